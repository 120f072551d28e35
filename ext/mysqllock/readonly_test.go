package mysqllock

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestSwitchOver: the primary becomes read-only, stays up, and new connections
// lead to another. Nobody stays with the old one: the holder is told, and locks
// can be had again.
func TestSwitchOver(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"", "?mode=session"} {
		t.Run("mode"+query, func(t *testing.T) {
			t.Parallel()
			before, after := servers.StartMariaDB(t), servers.StartMariaDB(t)
			for _, s := range []*servers.MariaDB{before, after} {
				s.Must("CREATE USER app@'%' IDENTIFIED BY 'app'; GRANT ALL ON holdfast.* TO app@'%'") // root may write all the same
				if err := opened(t, s.URL()+query).Create(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			proxy := servers.StartProxy(t, before.Addr())
			at, err := url.Parse(before.URL() + query)
			if err != nil {
				t.Fatal(err)
			}
			at.User, at.Host = url.UserPassword("app", "app"), proxy.Addr()
			lk, err := holdfast.Open(t.Context(), at.String(), &holdfast.Options{TTL: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { lk.Close() })
			held := locked(t, lk, "held")

			before.Must("SET GLOBAL read_only = 1")
			proxy.Lead(after.Addr())
			select {
			case <-held.Done():
			case <-time.After(patience):
				t.Error("the holder of a lock that the new primary does not know is not told")
			}
			if l := locked(t, lk, "held"); l.Fence() == 0 {
				t.Errorf("the new lock has ended: %v", l.Err())
			}
		})
	}
}

// TestReadOnly: who can reach no server that writes is told what is wrong.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"", "?mode=session"} {
		t.Run("mode"+query, func(t *testing.T) {
			t.Parallel()
			s := servers.StartMariaDB(t)
			s.Must("CREATE USER app@'%' IDENTIFIED BY 'app'; GRANT ALL ON holdfast.* TO app@'%'")
			at := strings.Replace(s.URL(), "root:secret", "app:app", 1) + query
			if err := opened(t, at).Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			lk, err := holdfast.Open(t.Context(), at, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { lk.Close() })
			s.Must("SET GLOBAL read_only = 1")
			if _, err := lk.TryLock(t.Context(), "key"); err == nil || !strings.Contains(err.Error(), "takes no writes") {
				t.Errorf("got %v, want an error that says that the server takes no writes", err)
			}
			s.Must("SET GLOBAL read_only = 0")
			locked(t, lk, "key")
		})
	}
}
