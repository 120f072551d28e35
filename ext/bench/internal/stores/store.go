// Package stores knows what is measured: kinds of stores, real servers of each, and
// the ways to lock there, ours, those that people use instead, and the bare commands
// that they would write by hand. Each way has the settings that are best for it.
package stores

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	_ "github.com/holdfast-go/holdfast/ext/all"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// A Store is a kind of store, with the ways to lock in it.
type Store struct {
	Name  string
	Title string
	Sides []Side // ours first

	// Modules are the paths of what the sides are made of, ours aside.
	Modules []string

	// Cost names what Server.Count counts, "" if nothing does.
	Cost string

	// OneProcess says that processes do not see each other's locks.
	OneProcess bool

	// Only names the one bench that says something here, "" if all do.
	Only string

	// Polls says that it wakes nobody who waits, so that ours asks in pauses that
	// grow while it waits.
	Polls bool

	// Start starts the servers, which serve leases of such a TTL.
	Start func(tb servers.TB, ttl time.Duration) *Server
}

// A Server is one that runs, or several that serve together.
type Server struct {
	At []string // what Side.Open takes

	// About tells its version, and those settings that matter for how fast it is.
	About string

	// Count returns what it has cost the server so far that a side locks. It is
	// nil if the Store has no Cost.
	Count func(Side) int

	// Fail, unless it is nil, breaks something once all sides have warmed up.
	Fail func()
}

// A Side is one way to lock.
type Side struct {
	Name string
	Kind Kind
	Open opener

	// Patient says that it is another side with other pauses between two tries, which
	// makes no difference where nobody waits.
	Patient bool

	// Empty says that it locks nothing, to show what measuring costs.
	Empty bool

	// Renews says that its locks stay held for longer than their TTL, and that
	// one process can hold many.
	Renews bool

	// sends are the commands that it sends to Redis by themselves, of those that
	// its scripts may call too.
	sends []string
}

type opener func(at []string, ttl time.Duration) (*Library, error)

// A Kind says whose a Side is.
type Kind int

// The kinds of sides.
const (
	Ours Kind = iota
	Peer      // a library that people use
	Bare      // the commands of a client
)

// A Library is what all sides can do.
type Library struct {
	// Lock waits until ctx ends, where the side can give up at all.
	Lock  func(ctx context.Context, key string) (unlock func() error, err error)
	Close func()
}

// All returns every Store.
func All() []Store {
	return []Store{
		memory(), file(), sqlite(), redisStore(), redlock(), redlockStopped(), memcached(),
		postgres(), postgresSession(), mysqlStore(), mysqlSession(), etcd(), zooKeeper(), ensemble(),
	}
}

// Find returns the side of a store, by their names.
func Find(store, side string) (Side, bool) {
	for _, st := range All() {
		for _, s := range st.Sides {
			if st.Name == store && s.Name == side {
				return s, true
			}
		}
	}
	return Side{}, false
}

// holdfastAt is our side on the store whose URL the address is.
func holdfastAt(at []string, ttl time.Duration) (*Library, error) {
	locks, err := holdfast.Open(context.Background(), at[0], &holdfast.Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return holdfastOn(locks), nil
}

func holdfastOn(locks *holdfast.Locker) *Library {
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			l, err := locks.Lock(ctx, key)
			if err != nil {
				return nil, err
			}
			return l.Unlock, nil
		},
		Close: func() { _ = locks.Close() },
	}
}

// create makes the tables of one of our stores.
func create(tb servers.TB, url string) {
	ctx := context.Background()
	store, err := driver.Open(ctx, url)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	defer store.Close()
	tables, ok := store.(driver.Creator)
	if !ok {
		tb.Fatalf("%s has no tables to create", url)
	}
	if err := tables.Create(ctx); err != nil {
		tb.Fatalf("%v", err)
	}
}

// Pauses between two tries of those that poll. Short ones hand over sooner and
// are fairer; shorter than a millisecond many systems cannot sleep. Long ones
// get more done on one key, because those who wait disturb less.
const (
	pause     = time.Millisecond
	longPause = 5 * time.Millisecond
)

// poll tries until it has the lock.
func poll(ctx context.Context, pause time.Duration, try func() (bool, error)) error {
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

var errGone = errors.New("the lock was gone before it was unlocked")

// gone returns errGone if a release has found nothing.
func gone(found bool, err error) error {
	if err == nil && !found {
		err = errGone
	}
	return err
}

// join makes a URL of several addresses.
func join(scheme string, addrs []string) string { return scheme + strings.Join(addrs, ",") }
