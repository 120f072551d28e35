package filelock

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// dirs opens Stores, over one directory per test.
type dirs struct{ byTest sync.Map }

func (d *dirs) open(t testing.TB) driver.Store {
	dir, ok := d.byTest.Load(t)
	if !ok {
		dir = t.TempDir()
		d.byTest.Store(t, dir)
	}
	return must.Get(New(dir.(string), nil))
}

func TestContract(t *testing.T) {
	t.Parallel()
	d := new(dirs)
	drivertest.Run(t, drivertest.Harness{Open: d.open, Newer: d.newer, Lacks: drivertest.Outlive})
}

// Without events, as on a network file system or another system than Linux.
func TestContractByLooking(t *testing.T) {
	t.Parallel()
	d := new(dirs)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Store {
			s := d.open(t).(*Store)
			s.onNetwork.Store(true)
			return s
		},
		Lacks: drivertest.Outlive,
	})
}

// A user works with a Store in a test, and fails it when something goes wrong.
type user struct {
	testing.TB
	*Store
}

func in(t testing.TB, dir string, opts *Options) *user {
	s := must.Get(New(dir, opts))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &user{t, s}
}

func exclusive(key string) driver.Ask {
	return driver.Ask{Span: 1, Claim: driver.Claim{
		Key: key, ID: rand.Text(), Owner: "test", Weight: driver.MaxWeight, Limit: driver.MaxWeight,
		TTL: time.Minute,
	}}
}

func waiting(c driver.Ask) driver.Ask { c.Wait = true; return c }

func (u *user) must(errs ...error) {
	u.Helper()
	if err := errors.Join(errs...); err != nil {
		u.Fatal(err)
	}
}

// path is where the lock file of a key is.
func (u *user) path(key string) string { return filepath.Join(u.dir, fileName(key)) }

func (u *user) acquire(c driver.Ask) driver.Grant {
	u.Helper()
	g, err := u.Acquire(context.Background(), c)
	if err != nil {
		u.Fatal(err)
	}
	return g
}

func (u *user) granted(c driver.Ask) driver.Grant {
	u.Helper()
	g := u.acquire(c)
	if !g.OK {
		u.Fatalf("%q was refused: %+v", c.Key, g)
	}
	return g
}

func (u *user) refused(c driver.Ask) driver.Grant {
	u.Helper()
	g := u.acquire(c)
	if g.OK {
		u.Fatalf("%q was granted: %+v", c.Key, g)
	}
	return g
}

func (u *user) renew(c driver.Ask) error {
	return errors.Join(u.Renew(context.Background(), asks.Renewals(c))...)
}

func (u *user) release(c driver.Ask) {
	u.Helper()
	if err := errors.Join(u.Release(context.Background(), asks.Releases(c))...); err != nil {
		u.Fatal(err)
	}
}

// fails expects Acquire to fail with a text that tells what is wrong.
func (u *user) fails(c driver.Ask) error {
	u.Helper()
	g, err := u.Acquire(context.Background(), c)
	if err == nil {
		u.Fatalf("%q was answered %+v, want an error", c.Key, g)
	}
	return err
}

// watch returns the wakes of a claim.
func (u *user) watch(c driver.Ask) <-chan driver.Grant {
	u.Helper()
	wakes := make(chan driver.Grant, 100)
	stop, err := u.Watch(context.Background(), c.Claim, func(g driver.Grant) { wakes <- g })
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(stop)
	return wakes
}

// inTime reports whether a claim that has waited since then, or was granted meanwhile, still
// stands. A machine that was paused for longer proves nothing about the claim.
func inTime(t testing.TB, since time.Time) bool {
	t.Helper()
	if time.Since(since) < exclusive("key").Alive() {
		return true
	}
	unproved.Logf(t, "a waiting claim may have lost its place")
	return false
}

// patience is how long a test waits for what takes a moment.
const patience = time.Minute

// receive waits for what a channel brings.
func receive[T any](t testing.TB, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	return v
}
