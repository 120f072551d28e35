package mysqllock

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// TestSessionRefusesSeveralServers has a balancer spread connections over two servers, each
// of which excludes, as it does in front of a Galera cluster.
func TestSessionRefusesSeveralServers(t *testing.T) {
	t.Parallel()
	first, second := servers.StartMariaDB(t, "innodb_flush_method = nosync"), servers.StartMariaDB(t, "innodb_flush_method = nosync")
	for _, m := range []*servers.MariaDB{first, second} {
		if err := must.Get(NewSession(config(t, m.URL()), nil)).Create(sessiontest.Bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	balancer := servers.StartBalancer(t, first.Addr(), second.Addr())
	err := sessiontest.Refused(t, strings.Replace(first.URL(), first.Addr(), balancer, 1)+"?mode=session")
	for _, words := range []string{first.Must("SELECT VERSION()"), "does not exclude: two connections asked for the same lock and got 1, 1", "Galera"} {
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("got the error %v, want an ErrInvalid with %q", err, words)
		}
	}
}
