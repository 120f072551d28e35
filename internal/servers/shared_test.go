package servers

import (
	"os"
	"sync"
	"testing"
)

// host has the servers of several tests, which do them no harm.
var host = &Host{}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := host.Close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

var started = sync.OnceValues(func() (p *Postgres, err error) {
	err = host.Try(func() { p = StartPostgres(host, "fsync = off") })
	return p, err
})

// sharedPostgres is a database of the test's own on a server that others use, too.
func sharedPostgres(t *testing.T) *Postgres {
	t.Helper()
	p, err := started()
	Missing(t, err)
	if err != nil {
		t.Fatal(err)
	}
	return p.Database(t)
}
