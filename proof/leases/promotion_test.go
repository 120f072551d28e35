package leases

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// several is the URL of a database on several hosts.
func several(at string, addrs ...string) string {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	var hosts, ports []string
	for _, addr := range addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			panic(err)
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	u.Host = ""
	return with(u.String(), "host", strings.Join(hosts, ","), "port", strings.Join(ports, ","))
}

// A primary falls silent, like a machine without a network, and its standby is promoted.
// The claims known to the standby stay held, their owners go on, and the new primary wakes
// the waiters.
func TestPromotion(t *testing.T) {
	t.Parallel()
	primary := servers.StartPostgres(t, postgres.nosync)
	front := servers.StartProxy(t, primary.Addr())
	at := create(t, primary.URL())
	standby := servers.StartStandby(t, primary, postgres.nosync)
	at = with(several(at, front.Addr(), standby.Addr()), "connect_timeout", "1")

	const held, waited, ttl = 20, 5, 2 * patience
	a := locker(t, at, &holdfast.Options{TTL: ttl})
	b := locker(t, at, &holdfast.Options{TTL: ttl})
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var locks []*holdfast.Lock
	var last uint64
	for i := range held {
		locks = append(locks, lock(t, a, fmt.Sprint("key", i)))
		if i < waited {
			last = max(last, locks[i].Fence())
		}
	}
	var lining sync.WaitGroup
	for i := range waited {
		lining.Go(func() {
			l, err := servers.Patient(ctx, b.Lock, fmt.Sprint("key", i))
			if err == nil {
				if token := l.Fence(); token <= last && l.Err() == nil {
					t.Errorf("token %d after %d", token, last)
				}
				err = unlockAtOnce(l)
			}
			if err != nil {
				t.Errorf("the one who waits for key%d: %v", i, err)
			}
		})
		servers.Until(t, "the one who waits to be in the queue", func() bool { return line(t, a, fmt.Sprint("key", i)) == 1 })
	}
	primary.AwaitStandbys(1)
	front.Blackhole(true)
	standby.Promote()

	other := locker(t, with(through(at, standby.Addr()), "host", "", "port", ""), nil)
	for i, l := range locks {
		if _, err := servers.Patient(ctx, other.TryLock, fmt.Sprint("key", i)); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("key%d, which the standby knew: %v; want ErrHeld", i, err)
		}
		if err := l.Err(); err != nil {
			t.Errorf("key%d, which the standby knew: %v", i, err)
		}
	}
	servers.Until(t, "an unlock that reaches the new primary", func() bool { return locks[0].Unlock() == nil || locks[0].Err() != nil })
	for i, l := range locks[1:] {
		if err := unlock(l); err != nil {
			t.Errorf("unlock of key%d: %v", i+1, err)
		}
	}
	lining.Wait()
	front.Blackhole(false)
}

// A standby that hears nothing from its primary any more is promoted, and the
// primary goes on. Both grant the key. When the owner's address leads to the new
// primary, it is told.
func TestStalePromotion(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers of its own: make prove")
	}
	t.Parallel()
	primary := servers.StartPostgres(t, postgres.nosync)
	front := servers.StartProxy(t, primary.Addr())
	at := create(t, primary.URL())
	standby := servers.StartStandby(t, primary, postgres.nosync)
	separateStandby(t, standby)
	opts := &holdfast.Options{TTL: patience / 2}
	held := lock(t, locker(t, through(at, front.Addr()), opts), "key")
	last := held.Fence()
	standby.Promote()

	next := lock(t, locker(t, through(at, standby.Addr()), opts), "key")
	if next.Fence() <= last {
		t.Errorf("token %d after %d", next.Fence(), last)
	}
	succeed(t, held.Err())
	front.Redirect(standby.Addr())
	select {
	case <-held.Done():
	case <-time.After(patience):
		t.Fatal("the owner of a lock that the new primary does not know was not told")
	}
	succeed(t, unlock(next))
}

// The same with synchronous replication: the primary grants nothing alone.
func TestSynchronousStandby(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers of its own: make prove")
	}
	t.Parallel()
	primary := servers.StartPostgres(t, postgres.nosync)
	at := create(t, primary.URL())
	standby := servers.StartStandby(t, primary, postgres.nosync)
	locks := locker(t, at, nil)
	primary.Must("ALTER SYSTEM SET synchronous_standby_names = '*'")
	primary.Must("SELECT pg_reload_conf()")
	succeed(t, unlock(lock(t, locks, "with a standby")))
	separateStandby(t, standby)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if l, err := locks.Lock(ctx, "key"); err == nil {
		t.Errorf("without its standby the primary has granted token %d", l.Fence())
	}
	standby.Promote()
	succeed(t, unlock(lock(t, locker(t, through(at, standby.Addr()), nil), "key")))
}

// separateStandby lets a standby hear no more from its primary.
func separateStandby(t *testing.T, standby *servers.Postgres) {
	t.Helper()
	standby.Must("ALTER SYSTEM SET primary_conninfo = ''")
	standby.Must("SELECT pg_reload_conf()")
	servers.Until(t, "the standby to hear nothing", func() bool {
		return strings.TrimSpace(standby.Must("SELECT count(*) FROM pg_stat_wal_receiver")) == "0"
	})
}
