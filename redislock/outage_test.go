package redislock_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// An outage is what goes wrong with a server, and what errors say of it.
type outage struct {
	name   string
	begin  func(t *testing.T, r *servers.Redis, p *servers.Proxy, held string) // held is where Redis keeps the key
	words  string
	silent bool
}

var outages = []outage{
	{"refused", func(_ *testing.T, _ *servers.Redis, p *servers.Proxy, _ string) { p.Refuse(true); p.Reset() }, "connection re", false}, // fused, or set,
	{"silent", func(_ *testing.T, _ *servers.Redis, p *servers.Proxy, _ string) { p.Blackhole(true) }, "the store has not answered", true},
	{"NOPERM", func(_ *testing.T, r *servers.Redis, _ *servers.Proxy, _ string) {
		r.Must("ACL", "SETUSER", "locks", "resetkeys")
	}, "NOPERM", false},
	{"WRONGTYPE", func(_ *testing.T, r *servers.Redis, _ *servers.Proxy, held string) { r.Must("SET", held, "text") }, "WRONGTYPE", false},
}

// The error of a Lock has the fault of the server, whether its context has ended or not.
// The error matches the error of the context only if the context has ended.
func TestOutageInErrors(t *testing.T) {
	t.Parallel()
	for _, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			r := servers.StartRedis(t)
			p := servers.StartProxy(t, r.Addr())
			r.AddUser("locks", "secret", documented(t)...)
			locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
				return holdfast.Open(ctx, "redis://locks:secret@"+p.Addr(), nil)
			})
			t.Cleanup(func() { locks.Close() })
			lock := mustLock(t, locks, "key")
			held := r.Must("KEYS", "*:held:key").([]any)[0].(string)
			mustUnlock(t, lock)
			o.begin(t, r, p, held)
			defer p.Blackhole(false)
			// try repeats a call that a slow machine may have spoiled, for a minute at most.
			try := func(call string, ended error, ask func() error) {
				t.Helper()
				err := ask()
				for began := time.Now(); o.spoiled(err, ended) && time.Since(began) < patience; {
					err = ask()
				}
				if err == nil || !strings.Contains(err.Error(), o.words) {
					t.Errorf("%s: %v, want %q in it", call, err, o.words)
				}
				for _, of := range []error{context.Canceled, context.DeadlineExceeded} {
					if errors.Is(err, of) != (of == ended) {
						t.Errorf("%s: %v matches %v: %v", call, err, of, of != ended)
					}
				}
				if errors.Is(err, os.ErrDeadlineExceeded) != o.silent {
					t.Errorf("%s: %v matches os.ErrDeadlineExceeded: %v", call, err, !o.silent)
				}
			}

			lockIn := func(ctx context.Context, opts ...holdfast.LockOption) error {
				_, err := locks.Lock(ctx, "key", opts...)
				return err
			}
			try("TryLock", nil, func() error {
				_, err := locks.TryLock(t.Context(), "key")
				return err
			})
			try("Lock with Wait", nil, func() error { return lockIn(t.Context(), holdfast.Wait(2*time.Second)) })
			try("Lock past its deadline", context.DeadlineExceeded, func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				return lockIn(ctx)
			})
			try("Lock that is cancelled", context.Canceled, func() error {
				ctx, cancel := context.WithCancel(t.Context())
				defer time.AfterFunc(2*time.Second, cancel).Stop()
				return lockIn(ctx)
			})
			try("Lock", nil, func() error { return lockIn(t.Context()) })
		})
	}
}

// spoiled reports whether a limit has ended a call before the call could learn of the outage,
// or whether the Locker has given the store up before the context of the call could end.
func (o outage) spoiled(err, ended error) bool {
	if ended != nil && !errors.Is(err, ended) {
		return true
	}
	if err != nil && strings.Contains(err.Error(), o.words) {
		return !o.silent && errors.Is(err, os.ErrDeadlineExceeded)
	}
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
