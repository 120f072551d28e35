package zklock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// patience is how long a test waits for what happens soon on a healthy machine.
const patience = 60 * time.Second

func bounded(t testing.TB) context.Context {
	t.Helper()
	return within(t, patience)
}

func within(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// newStore returns a store that is closed when the test ends.
func newStore(t testing.TB, servers []string, opts *Options) *Store {
	t.Helper()
	s := must.Get(New(servers, opts))
	t.Cleanup(func() { s.Close() })
	return s
}

// locker returns a locker that is closed when the test ends.
func locker(t testing.TB, opts holdfast.Options, addrs ...string) *holdfast.Locker {
	t.Helper()
	lk := must.Get(holdfast.New(must.Get(New(addrs, nil)), &opts))
	t.Cleanup(func() { lk.Close() })
	return lk
}

// opened returns the locker of a URL, which is closed when the test ends.
func opened(t testing.TB, url string) *holdfast.Locker {
	t.Helper()
	lk := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) })
	t.Cleanup(func() { lk.Close() })
	return lk
}

// locked retries if a server is slow or has no leader, or if a pause of this machine cost the lock,
// whose token is then 0.
func locked(t testing.TB, lk *holdfast.Locker, key string) *holdfast.Lock {
	t.Helper()
	l, err := lockedWithin(bounded(t), lk, key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func lockedWithin(ctx context.Context, lk *holdfast.Locker, key string, opts ...holdfast.LockOption) (*holdfast.Lock, error) {
	for {
		l, err := lk.Lock(ctx, key, opts...)
		if err == nil && l.Fence() > 0 || ctx.Err() != nil || errors.Is(err, driver.ErrInvalid) || errors.Is(err, holdfast.ErrClosed) {
			return l, err
		}
	}
}

func exclusive(key, id string) driver.Ask {
	c := driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: patience}
	return driver.Ask{Claim: c, Span: 1}
}

// granted acquires a claim, also if the server is slow.
func granted(t testing.TB, s *Store, a driver.Ask) driver.Grant {
	t.Helper()
	g := answered(t, s, a)
	if !g.OK {
		t.Fatalf("%s was refused %s", a.ID, a.Key)
	}
	return g
}

// refused requests a claim that another claim blocks, also if the server is slow.
func refused(t testing.TB, s *Store, a driver.Ask) {
	t.Helper()
	if g := answered(t, s, a); g.OK {
		t.Fatalf("%s was granted %s: %+v", a.ID, a.Key, g)
	}
}

func answered(t testing.TB, s *Store, a driver.Ask) driver.Grant {
	t.Helper()
	return servers.Insist(t, func(ctx context.Context) (driver.Grant, error) { return s.Acquire(ctx, a) })
}

// sessionOf opens the session for a TTL, also if the server is slow.
func sessionOf(t testing.TB, s *Store, ttl time.Duration) *session {
	t.Helper()
	return servers.Insist(t, func(ctx context.Context) (*session, error) { return s.session(ctx, ttl) })
}

func renew(ctx context.Context, s *Store, a driver.Ask) error {
	return errors.Join(s.Renew(ctx, []driver.Renewal{{Claim: a.Claim}})...)
}

func release(ctx context.Context, s *Store, a driver.Ask) error {
	return errors.Join(s.Release(ctx, []driver.Release{{Claim: a.Claim}})...)
}

// patiently makes a call until it is answered.
func patiently(t testing.TB, call func(ctx context.Context) error) error {
	t.Helper()
	for all := bounded(t); ; {
		ctx, cancel := context.WithTimeout(all, time.Second)
		err := call(ctx)
		cancel()
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrInvalid) || all.Err() != nil {
			return err
		}
	}
}
