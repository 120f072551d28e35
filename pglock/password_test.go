package pglock

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// A rotated is a user of the database whose password changes.
type rotated struct {
	*testing.T
	name     string
	password atomic.Value
}

func rotating(t *testing.T, name string) *rotated {
	r := &rotated{T: t, name: name}
	server.Must("CREATE ROLE " + name + " LOGIN SUPERUSER")
	r.rotate()
	return r
}

// rotate changes the password, and ends the connections made with the last one.
func (r *rotated) rotate() {
	r.Helper()
	password := rand.Text()
	r.password.Store(password)
	server.Must("ALTER ROLE " + r.name + " PASSWORD '" + password + "'")
	server.Must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + r.name + "'")
}

// config has no password: that is asked for before each connection.
func (r *rotated) config() *pgx.ConnConfig {
	c := config(r, server.URL())
	c.User, c.Password = r.name, "wrong"
	return c
}

func (r *rotated) beforeConnect(_ context.Context, c *pgx.ConnConfig) error {
	c.Password = r.password.Load().(string)
	return nil
}

// TestListenerWithNewPassword: the connection that listens is made as the pool
// makes its own, also when it has to be made again.
func TestListenerWithNewPassword(t *testing.T) {
	t.Parallel()
	r := rotating(t, "listening")
	at, err := pgxpool.ParseConfig(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	at.ConnConfig, at.BeforeConnect = r.config(), r.beforeConnect
	pool, err := pgxpool.NewWithConfig(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := must.Get(New(pool, &Options{Table: "listening"}))
	t.Cleanup(func() { s.Close() })
	if err := s.Create(sessiontest.Bounded(t)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wakeByPush(t, s)
		r.rotate()
		pool.Reset()
	}
}

// wakeByPush has a store wake one of its own claims.
func wakeByPush(t *testing.T, s *Store) {
	t.Helper()
	held := driver.Claim{Key: "key", ID: rand.Text(), Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
	next := held
	next.ID = rand.Text()
	acquire := func(a driver.Ask) bool {
		g, err := s.Acquire(sessiontest.Bounded(t), a)
		if err != nil {
			t.Fatal(err)
		}
		return g.OK
	}
	release := func(c driver.Claim) {
		err := errors.Join(s.Release(sessiontest.Bounded(t), []driver.Release{{Claim: c}})...)
		if err != nil && !errors.Is(err, driver.ErrLost) { // There may be no such claim.
			t.Fatal(err)
		}
	}
	woken := make(chan bool, 1)
	wake := func(driver.Grant) {
		select {
		case woken <- true:
		default:
		}
	}
	stop, err := s.Watch(sessiontest.Bounded(t), next, wake)
	for ctx := sessiontest.Bounded(t); err != nil; stop, err = s.Watch(ctx, next, wake) {
		if ctx.Err() != nil {
			t.Fatal(err) // It connects again after a moment, but not so long.
		}
	}
	defer stop()
	wait := driver.Ask{Claim: next, Wait: true}
	// A waiter whose place has ended is not woken.
	unproved.InTime(t, next.Alive(), func() {
		release(next) // of the last try
		acquire(driver.Ask{Claim: held})
		if acquire(wait) {
			t.Fatal("the key has two holders")
		}
		release(held)
	})
	for got := false; !got; got = acquire(wait) {
		select {
		case <-woken: // also if it has connected again
		case <-time.After(sessiontest.Patience):
			t.Fatal("who waited was not told")
		}
	}
	release(next)
}

func TestSessionWithNewPassword(t *testing.T) {
	needsSessions(t)
	t.Parallel()
	r := rotating(t, "in_session")
	s := must.Get(NewSession(r.config(), &SessionOptions{Sequence: "in_session", BeforeConnect: r.beforeConnect}))
	lk := must.Get(holdfast.New(s, nil))
	t.Cleanup(func() { lk.Close() })
	if err := s.Create(sessiontest.Bounded(t)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l := sessiontest.Locked(t, lk, "key")
		r.rotate()
		sessiontest.Ends(t, l)
	}
}
