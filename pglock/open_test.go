package pglock

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func mustParse(t *testing.T, raw string) (*pgx.ConnConfig, *pgx.ConnConfig) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	config, opts, _, err := parse(u)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return config.ConnConfig, opts.Listen
}

// hosts are the addresses at which a client looks, in order.
func hosts(c *pgx.ConnConfig) string {
	all := []string{c.Host + ":" + strconv.Itoa(int(c.Port))}
	for _, f := range c.Fallbacks {
		if next := f.Host + ":" + strconv.Itoa(int(f.Port)); next != all[len(all)-1] { // or it is the same without TLS
			all = append(all, next)
		}
	}
	return strings.Join(all, " ")
}

func TestURLNamesHosts(t *testing.T) {
	for _, tt := range []struct{ url, pghost, hosts, listen string }{
		{url: "postgres://a:5433/db", hosts: "a:5433"},
		{url: "postgres://a,b/db", hosts: "a:5432 b:5432"},
		{url: "postgres://me:secret@/db?host=a,b&port=5433,5434", hosts: "a:5433 b:5434"},
		{url: "postgres:///db?host=::1,b&port=5433", hosts: "::1:5433 b:5433"},
		{url: "postgres:///db", pghost: "a,b", hosts: "a:5432 b:5432"},
		{url: "postgres://localhost/db?listen=b:5433", hosts: "localhost:5432", listen: "b:5433"},
		{url: "postgres:///db?host=a,b&port=6432,6433&listen=c:5433", hosts: "a:6432 b:6433", listen: "c:5433"},
	} {
		for _, name := range []string{"PGSSLMODE", "PGPORT", "PGTARGETSESSIONATTRS", "PGCONNECT_TIMEOUT"} {
			t.Setenv(name, "")
		}
		t.Setenv("PGHOST", tt.pghost)
		config, listen := mustParse(t, tt.url)
		if got := hosts(config); got != tt.hosts {
			t.Errorf("%s connects to %s, want %s", tt.url, got, tt.hosts)
		}
		if several := strings.Contains(tt.hosts, " "); (config.ValidateConnect != nil) != several {
			t.Errorf("%s: it must look for the primary if there are several hosts, and only then", tt.url)
		}
		if config.ConnectTimeout != 5*time.Second {
			t.Errorf("%s connects within %v", tt.url, config.ConnectTimeout)
		}
		if listen != nil && hosts(listen) != tt.listen || listen == nil && tt.listen != "" {
			t.Errorf("%s listens at %+v, want %s", tt.url, listen, tt.listen)
		}
	}
}

// A caller that does not ask for less gets a server that proves its name, if the way there
// leaves this machine. Every way counts by itself.
func TestURLEncrypts(t *testing.T) {
	for _, tt := range []struct {
		url, pghost, mode string
		proves, listens   bool
	}{
		{url: "postgres://localhost/db"},
		{url: "postgres:///db?host=127.0.0.1,::1&port=5433"},
		{url: "postgres:///db?host=/run/postgresql"},
		{url: "postgres:///db", pghost: "/run/postgresql"},
		{url: "postgres://db/db", proves: true},
		{url: "postgres://localhost,db/db", proves: true},
		{url: "postgres:///db?host=db", proves: true},
		{url: "postgres:///db", pghost: "db", proves: true},
		{url: "postgres:///db", pghost: "db", mode: "prefer"},
		{url: "postgres://db/db?sslmode=disable"},
		{url: "postgres://localhost:6432/db?listen=db:5432", listens: true},
		{url: "postgres://db:6432/db?listen=localhost:5432", proves: true},
	} {
		t.Setenv("PGSSLMODE", tt.mode)
		t.Setenv("PGHOST", tt.pghost)
		config, listen := mustParse(t, tt.url)
		if got := proves(config); got != tt.proves {
			t.Errorf("%s with PGHOST=%s: the server has to prove its name: %t, want %t", tt.url, tt.pghost, got, tt.proves)
		}
		if listen != nil && proves(listen) != tt.listens {
			t.Errorf("%s: the server where it listens has to prove its name: %t, want %t", tt.url, !tt.listens, tt.listens)
		}
	}
}

func proves(c *pgx.ConnConfig) bool {
	return c.TLSConfig != nil && !c.TLSConfig.InsecureSkipVerify && c.TLSConfig.ServerName != ""
}
