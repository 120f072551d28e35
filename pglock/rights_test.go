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
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// An unprivileged is a Store of a user who may not make its table, so that the
// contract leaves that out.
type unprivileged struct{ *Store }

// Create is none of driver.Creator.
func (unprivileged) Create() {}

// TestSessionLeastRights is session mode for a user with the rights that the documentation
// names, and no others.
func TestSessionLeastRights(t *testing.T) {
	needsSessions(t)
	t.Parallel()
	db := server.Database(t)
	prepared(t, db.URL())
	db.Must("CREATE ROLE least_session LOGIN PASSWORD '" + servers.Verifier("least") + "'; GRANT ALL ON SEQUENCE holdfast_fence TO least_session")
	t.Cleanup(func() { db.Must("DROP OWNED BY least_session; DROP ROLE least_session") })
	h := sessions(strings.Replace(db.URL(), "postgres:secret@", "least_session:least@", 1))
	for _, failure := range drivertest.Check(t, h, "together/all-methods", "watch/release", "batch/renew") {
		t.Error(failure)
	}
}

// TestLookingRights lets people see who holds what, and nothing else.
func TestLookingRights(t *testing.T) {
	t.Parallel()
	db := server.Database(t)
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, db.URL()) })
	defer s.Close()
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(*Store).Create(ctx) })
	db.Must("CREATE ROLE support LOGIN PASSWORD '" + servers.Verifier("look") + "'; GRANT SELECT ON holdfast_claims TO support")
	t.Cleanup(func() { db.Must("DROP OWNED BY support; DROP ROLE support") })
	db.Must("SET ROLE support; SELECT * FROM holdfast_claims")
	if rows, err := db.Do("SET ROLE support; SELECT * FROM holdfast"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("the table shows %q, %v", rows, err)
	}
}

// TestTLS connects to a server that proves its name, in both modes.
func TestTLS(t *testing.T) {
	needsSessions(t)
	t.Parallel()
	db := servers.StartPostgresTLS(t, "fsync = off")
	prepared(t, db.URL())
	secure := strings.Replace(db.URL(), "sslmode=disable", "sslmode=verify-full", 1)
	for _, mode := range []string{"lease", "session"} {
		s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
			return driver.Open(ctx, secure+"&sslrootcert="+db.TLS.CA+"&mode="+mode)
		})
		defer s.Close()
		servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(driver.Creator).Create(ctx) })
		if _, err := s.(driver.Checker).Check(sessiontest.Bounded(t)); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if err := sessiontest.Refused(t, secure+"&mode="+mode); !strings.Contains(err.Error(), "certificate signed by unknown authority") {
			t.Errorf("%s, without the authority: %v", mode, err)
		}
	}
}

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
