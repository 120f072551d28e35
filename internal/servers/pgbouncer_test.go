package servers

import (
	"net/url"
	"strings"
	"testing"
)

func TestPgBouncer(t *testing.T) {
	p := sharedPostgres(t)
	b := StartPgBouncer(t, p, "transaction", "default_pool_size = 1")

	// Two sessions share the only connection, and thus what belongs to it.
	one, two := openPsql(t, p, b.Addr()), openPsql(t, p, b.Addr())
	one.send("SELECT pg_advisory_lock(1), 'locked';")
	one.wantLine("locked")
	two.send("SELECT 'unlocked: ' || pg_advisory_unlock(1);")
	two.wantLine("unlocked: true")

	b.Restart()
	if got, err := query(p.psql(b.URL()), "SELECT 1"); got != "1" || err != nil {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	b.Kill()
	if _, err := query(p.psql(b.URL()), "SELECT 1"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a killed pooler says %v", err)
	}
}

func TestPgBouncerSession(t *testing.T) {
	p := sharedPostgres(t)
	b := StartPgBouncer(t, p, "session")
	one, two := openPsql(t, p, b.Addr()), openPsql(t, p, b.Addr())
	one.send("SELECT pg_advisory_lock(1), 'locked';")
	one.wantLine("locked")
	two.send("SELECT 'unlocked: ' || pg_advisory_unlock(1);")
	two.wantLine("you don't own a lock")
	two.wantLine("unlocked: false")
}

func TestPgBouncerUsers(t *testing.T) {
	p := sharedPostgres(t)
	b := StartPgBouncer(t, p, "transaction")
	p.Must("CREATE ROLE reader LOGIN PASSWORD 'other'")
	u, err := url.Parse(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("reader", "other")
	if got, err := query(p.psql(u.String()), "SELECT current_user"); got != "reader" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	u.User = url.UserPassword("reader", "wrong")
	if _, err := query(p.psql(u.String()), "SELECT 1"); err == nil || !strings.Contains(err.Error(), "authentication failed") {
		t.Errorf("with a wrong password: %v", err)
	}
}
