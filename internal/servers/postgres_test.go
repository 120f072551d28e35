package servers

import (
	"net/url"
	"os"
	"strings"
	"testing"
)

func TestPostgres(t *testing.T) {
	p := StartPostgres(t, "max_connections = 17")
	if got := p.Must("SHOW max_connections; SHOW fsync"); got != "17\non" {
		t.Errorf("the settings are %q", got)
	}
	p.Must("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x')")
	addr := p.Addr()
	p.Kill()
	if _, err := p.Do("SELECT 1"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a killed server says %v", err)
	}
	p.Restart()
	if got := p.Must("SELECT * FROM t"); got != "1|x" || p.Addr() != addr {
		t.Errorf("after a restart it has %q at %s, and was at %s", got, p.Addr(), addr)
	}
	_, err := p.Do("SELECT 1; SELECT nonsense; SELECT 2")
	if err == nil || !strings.Contains(err.Error(), `column "nonsense" does not exist`) {
		t.Errorf("got %v", err)
	}
}

func TestPostgresPassword(t *testing.T) {
	p := sharedPostgres(t)
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("postgres", "wrong")
	_, err = query(p.psql(u.String()), "SELECT 1")
	if err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("with a wrong password: %v", err)
	}
}

func TestPostgresStop(t *testing.T) {
	p := StartPostgres(t, "fsync = off")
	s := openPsql(t, p, p.Addr())
	s.send("SELECT 1;")
	s.wantLine("1")
	p.Stop()
	if !strings.Contains(p.log(), "database system is shut down") {
		t.Errorf("the server was not asked to end; its log says\n%s", p.log())
	}
	p.Restart()
	p.Must("SELECT 1")
}

func TestMissingPostgres(t *testing.T) {
	if found, _ := os.ReadDir("/usr/lib/postgresql"); len(found) > 0 {
		t.Setenv("PATH", "")
		if got := postgresFolder(t); !strings.HasPrefix(got, "/usr/lib/postgresql/") {
			t.Errorf("found %s outside of PATH", got)
		}
	}
	t.Setenv("HOLDFAST_POSTGRES", "/no-such-folder")
	v := failing(t, func(tb TB) { StartPostgres(tb) })
	if !strings.Contains(v.fatal, "/no-such-folder") {
		t.Errorf("the test failed with %q", v.fatal)
	}
}
