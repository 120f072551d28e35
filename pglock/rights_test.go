package pglock

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// An unprivileged is a Store of a user who may not make its table, so that the
// contract leaves that out.
type unprivileged struct{ *Store }

// Create is none of driver.Creator.
func (unprivileged) Create() {}

// TestLeastRights is the contract for a user with the rights that the
// documentation names, and no others. Its short form is a few rules that need all
// statements of a store.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	server.Must("CREATE ROLE least LOGIN PASSWORD '" + servers.Verifier("least") + "'")
	least := strings.Replace(server.URL(), "postgres:secret@", "least:least@", 1)
	var tables sync.Map
	h := drivertest.Harness{Open: func(t testing.TB) driver.Store {
		name, known := tables.LoadOrStore(t, "t_"+strings.ToLower(rand.Text()))
		table := name.(string)
		if !known {
			s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
				return driver.Open(ctx, server.URL()+"&table="+table)
			})
			defer s.Close()
			servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(*Store).Create(ctx) })
			server.Must(`GRANT SELECT, INSERT, UPDATE, DELETE ON ` + table + ` TO least`)
		}
		return servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
			opened, err := driver.Open(ctx, least+"&table="+table)
			if err != nil {
				return nil, err
			}
			return unprivileged{opened.(*Store)}, nil
		})
	}}
	if !testing.Short() {
		drivertest.Run(t, h)
		return
	}
	for _, failure := range drivertest.Check(t, h, "together/all-methods", "watch/release", "token/over-release", "raise/later-grants", "batch/one-key") {
		t.Error(failure)
	}
}
