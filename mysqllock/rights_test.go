package mysqllock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// An unprivileged is a Store of a user who may not make its table, so that the
// contract leaves that out.
type unprivileged struct{ *waking }

// Create is none of driver.Creator.
func (unprivileged) Create() {}

// TestLeastRights is the contract for a user with the rights that the
// documentation names, and no others. Its short form is a few rules that need all
// statements of a store.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	admin := database(t)
	must := func(t testing.TB, text string) {
		t.Helper()
		if _, err := admin.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	must(t, `CREATE USER IF NOT EXISTS least@'%' IDENTIFIED BY 'least'`)
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("least", "least")
	least := at.String()
	var tables sync.Map
	h := drivertest.Harness{
		Lacks: drivertest.Notify,
		Open: func(t testing.TB) driver.Store {
			name, known := tables.LoadOrStore(t, "t_"+rand.Text())
			table := name.(string)
			if !known {
				s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
					return driver.Open(ctx, server+"?table="+table)
				})
				defer s.Close()
				servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(driver.Creator).Create(ctx) })
				must(t, `GRANT SELECT, INSERT, UPDATE, DELETE ON `+table+` TO least@'%'`)
			}
			return servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
				opened, err := driver.Open(ctx, least+"?table="+table)
				if err != nil {
					return nil, err
				}
				return unprivileged{opened.(*waking)}, nil
			})
		},
	}
	if !testing.Short() {
		drivertest.Run(t, h)
		return
	}
	for _, failure := range drivertest.Check(t, h, "together/all-methods", "token/over-release", "raise/later-grants", "batch/one-key") {
		t.Error(failure)
	}
}

// TestNewPassword changes the password of a store's user and ends the
// connections: the next call connects with the new one.
func TestNewPassword(t *testing.T) {
	t.Parallel()
	admin := database(t)
	var password atomic.Value
	rotate := func() {
		t.Helper()
		password.Store(rand.Text())
		for _, text := range []string{
			`CREATE OR REPLACE USER rotating@'%' IDENTIFIED BY '` + password.Load().(string) + `'`,
			`GRANT ALL ON *.* TO rotating@'%'`,
			`KILL USER rotating`,
		} {
			if _, err := admin.Exec(text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	}
	rotate()
	c := config(t, server)
	c.User, c.Passwd = "rotating", "wrong"
	err := c.Apply(mysql.BeforeConnect(func(_ context.Context, c *mysql.Config) error {
		c.Passwd = password.Load().(string)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	s := must.Get(New(db, &Options{Table: "rotated"}))
	defer s.Close()
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := driver.Claim{Key: rand.Text(), ID: rand.Text(), Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: sessiontest.Patience}
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: held}); err != nil || !g.OK {
		t.Fatalf("%+v, %v", g, err)
	}
	rotate()
	servers.Insist(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Renew(ctx, []driver.Renewal{{Claim: held}})[0]
	})
}
