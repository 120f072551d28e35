package mysqllock

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// modes are the ways in which a URL asks for locks.
var modes = []string{"", "?mode=session"}

// TestSwitchOver: the primary becomes read-only, stays up, and new connections
// lead to another. Nobody stays with the old one: the holder is told, and locks
// can be had again.
func TestSwitchOver(t *testing.T) {
	t.Parallel()
	before, after := servers.StartMariaDB(t, "innodb_flush_method = nosync"), servers.StartMariaDB(t, "innodb_flush_method = nosync")
	for _, s := range []*servers.MariaDB{before, after} {
		s.Must("CREATE USER app@'%' IDENTIFIED BY 'app'; GRANT ALL ON holdfast.* TO app@'%'") // root may write all the same
		for _, mode := range modes {
			if err := opened(t, s.URL()+mode).Create(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	proxy := servers.StartProxy(t, before.Addr())
	held := make(map[*holdfast.Locker]*holdfast.Lock)
	for _, mode := range modes {
		at, err := url.Parse(before.URL() + mode)
		if err != nil {
			t.Fatal(err)
		}
		at.User, at.Host = url.UserPassword("app", "app"), proxy.Addr()
		lk := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
			return holdfast.Open(ctx, at.String(), &holdfast.Options{TTL: 3 * time.Second})
		})
		t.Cleanup(func() { lk.Close() })
		held[lk] = sessiontest.Locked(t, lk, "held"+mode)
	}

	before.Must("SET GLOBAL read_only = 1")
	proxy.Lead(after.Addr())
	for lk, l := range held {
		select {
		case <-l.Done():
		case <-time.After(sessiontest.Patience):
			t.Errorf("%s: the holder of a lock that the new primary does not know is not told", l.Key())
		}
		next, err := servers.Patient(sessiontest.Bounded(t), lk.Lock, l.Key(), holdfast.TTL(sessiontest.Patience))
		if err != nil {
			t.Errorf("%s: no lock at the new primary: %v", l.Key(), err)
		} else if next.Fence() == 0 {
			t.Errorf("%s: the new lock has ended: %v", l.Key(), next.Err())
		}
	}
}

// TestReadOnly: who can reach no server that writes is told what is wrong.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := servers.StartMariaDB(t, "innodb_flush_method = nosync")
	s.Must("CREATE USER app@'%' IDENTIFIED BY 'app'; GRANT ALL ON holdfast.* TO app@'%'")
	for _, mode := range modes {
		at := strings.Replace(s.URL(), "root:secret", "app:app", 1) + mode
		if err := opened(t, at).Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		lk := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, at, nil) })
		t.Cleanup(func() { lk.Close() })
		s.Must("SET GLOBAL read_only = 1")
		if _, err := servers.Patient(sessiontest.Bounded(t), lk.TryLock, "key"); err == nil || !strings.Contains(err.Error(), "takes no writes") {
			t.Errorf("mode%s: got %v, want an error that says that the server takes no writes", mode, err)
		}
		s.Must("SET GLOBAL read_only = 0")
		sessiontest.Locked(t, lk, "key")
	}
}
