package mysqllock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// TestSessionLeastRights is session mode for a user with the rights that the documentation
// names, and no others.
func TestSessionLeastRights(t *testing.T) {
	t.Parallel()
	m := shared.Database(t)
	newSession(t, config(t, m.URL())).Close()
	const user = "least_session@'%'"
	m.Must("CREATE USER " + user + " IDENTIFIED BY 'least'; GRANT SELECT, UPDATE ON holdfast_fence TO " + user)
	t.Cleanup(func() { m.Must("DROP USER " + user) })
	least := config(t, m.URL())
	least.User, least.Passwd = "least_session", "least"
	h := drivertest.Harness{MinTTL: time.Second, Open: func(testing.TB) driver.Store { return must.Get(NewSession(least, nil)) }, Lacks: sessionLacks}
	for _, failure := range drivertest.Check(t, h, "together/all-methods", "batch/renew") {
		t.Error(failure)
	}
}

// TestLookingRights lets people see who holds what, and nothing else.
func TestLookingRights(t *testing.T) {
	t.Parallel()
	m := shared.Database(t)
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, m.URL()) })
	defer s.Close()
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(driver.Creator).Create(ctx) })
	const user = "support@'%'"
	m.Must("CREATE USER " + user + " IDENTIFIED BY 'look'; GRANT SELECT ON holdfast_claims TO " + user)
	t.Cleanup(func() { m.Must("DROP USER " + user) })
	at := config(t, m.URL())
	at.User, at.Passwd = "support", "look"
	db := sql.OpenDB(must.Get(mysql.NewConnector(at)))
	defer db.Close()
	if _, err := db.Exec("SELECT * FROM holdfast_claims"); err != nil {
		t.Error(err)
	}
	if _, err := db.Exec("SELECT * FROM holdfast"); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("the table can be read: %v", err)
	}
}

// TestTLS connects to a server that proves its name, in both modes.
func TestTLS(t *testing.T) {
	t.Parallel()
	m := servers.StartMariaDBTLS(t, "innodb_flush_method = nosync")
	for _, mode := range []string{"lease", "session"} {
		s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
			return driver.Open(ctx, m.URL()+"?tls=true&ca="+m.TLS.CA+"&mode="+mode)
		})
		defer s.Close()
		servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(driver.Creator).Create(ctx) })
		if _, err := s.(driver.Checker).Check(sessiontest.Bounded(t)); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if err := sessiontest.Refused(t, m.URL()+"?tls=true&mode="+mode); !strings.Contains(err.Error(), "certificate signed by unknown authority") {
			t.Errorf("%s, without the authority: %v", mode, err)
		}
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
			`CREATE USER IF NOT EXISTS rotating@'%'`,
			`ALTER USER rotating@'%' IDENTIFIED BY '` + password.Load().(string) + `'`,
			`GRANT ALL ON *.* TO rotating@'%'`,
		} {
			if _, err := admin.Exec(text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		var open []string
		rows, err := admin.Query(`SELECT id FROM information_schema.processlist WHERE user = 'rotating'`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			open = append(open, id)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		for _, id := range open {
			if _, err := admin.Exec(`KILL ` + id); err != nil {
				t.Fatal(err)
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
