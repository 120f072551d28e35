// Package stores lists the stores under test. A store has real servers and several ways to
// lock: Holdfast, the libraries that people use instead, and the bare commands that people
// would write by hand. Each way has the best settings for that way.
package stores

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	_ "github.com/holdfast-go/holdfast/all"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A Store is a kind of store, with the ways to lock in the store.
type Store struct {
	Name  string
	Title string
	Sides []Side // Holdfast first

	// Modules are the paths of the modules under test, without Holdfast.
	Modules []string

	// Cost names what Server.Count counts; "" if nothing counts.
	Cost string

	// OneProcess says that processes do not see each other's locks.
	OneProcess bool

	// Only names the meaningful benches of the store; none means all benches.
	Only []string

	// Waiting is how many clients can wait for one key, each with connections of its own.
	Waiting int

	// Held is how many times as many locks the bench held has as in other stores; 0 means 1.
	Held int

	// Polls says that the store wakes no waiters. So Holdfast polls, with pauses that grow
	// while a waiter waits.
	Polls bool

	// Start starts the servers, which serve leases of this TTL.
	Start func(tb servers.TB, ttl time.Duration) *Server
}

// A Server is a running server, or several servers that serve together.
type Server struct {
	At []string // the argument of Side.Open

	// About is the version of the server, and the settings that matter for speed.
	About string

	// Count returns the cost of the locks of a side for the server so far. Count is nil if
	// the Store has no Cost.
	Count func(Side) int

	// Fail breaks something once all sides have warmed up; may be nil.
	Fail func()
}

// A Side is one way to lock.
type Side struct {
	Name string
	Kind Kind
	Open opener

	// Patient marks a copy of another side with longer or shorter pauses between tries.
	// The pauses make no difference where nobody waits.
	Patient bool

	// Empty says that the side locks nothing, to show the cost of measuring.
	Empty bool

	// Renews says that locks of the side stay held for longer than their TTL, and that one
	// process can hold many locks.
	Renews bool

	// sends are the Redis commands that the side sends directly and that scripts may call
	// too.
	sends []string
}

type opener func(at []string, ttl time.Duration) (*Library, error)

// A Kind is the origin of a Side.
type Kind int

// The kinds of sides.
const (
	Ours Kind = iota
	Peer      // a library that people use
	Bare      // the commands of a client
)

// A Library is the interface to a side.
type Library struct {
	// Lock waits until ctx ends, if the side can give up at all.
	Lock  func(ctx context.Context, key string) (unlock func() error, err error)
	Close func()
}

// emulated are the benches of a store whose server stands in for a cloud. Its requests take
// milliseconds, and say little of those of the cloud.
var emulated = []string{"alone", "hand-off", "one-each", "waiting-10", "distinct-keys"}

// All returns every Store.
func All() []Store {
	return []Store{
		memory(), file(), sqlite(), redisStore(), redlock(), redlockStopped(), memcached(),
		postgres(), postgresSession(), mysqlStore(), mysqlSession(), sqlServer(), etcd(), natsStore(), s3Store(), gcsStore(), dynamoStore(), azureStore(), zooKeeper(), ensemble(),
	}
}

// Find returns a side by the names of the store and the side.
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

// holdfastAt opens the Holdfast side on the store with the URL at[0].
func holdfastAt(at []string, ttl time.Duration) (*Library, error) {
	locks, err := servers.Answer(context.Background(), func(ctx context.Context) (*holdfast.Locker, error) {
		return holdfast.Open(ctx, at[0], &holdfast.Options{TTL: ttl})
	})
	if err != nil {
		return nil, err
	}
	return holdfastOn(locks), nil
}

// holdfastOf opens the Holdfast side on the servers at addresses.
func holdfastOf(scheme string) opener {
	return func(at []string, ttl time.Duration) (*Library, error) {
		return holdfastAt([]string{scheme + "://" + strings.Join(at, ",")}, ttl)
	}
}

// byDefault opens the Holdfast side on the store with the URL at[1], which has no parameters.
func byDefault(at []string, ttl time.Duration) (*Library, error) { return holdfastAt(at[1:], ttl) }

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

// create makes the tables of a Holdfast store.
func create(tb servers.TB, url string) {
	store := servers.Insist(tb, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
	defer store.Close()
	tables, ok := store.(driver.Creator)
	if !ok {
		tb.Fatalf("%s has no tables to create", url)
	}
	servers.Insist(tb, func(ctx context.Context) (bool, error) { return true, tables.Create(ctx) })
}

// Pauses between two tries of sides that poll. Short pauses hand over sooner and are
// fairer, but many systems cannot sleep for less than a millisecond. Long pauses get more
// done on one key, because waiters disturb less.
const (
	pause     = time.Millisecond
	longPause = 5 * time.Millisecond
)

// poll retries until try acquires the lock.
func poll(ctx context.Context, pause time.Duration, try func() (bool, error)) error {
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		if err := rest.For(ctx, pause); err != nil {
			return err
		}
	}
}

var errGone = errors.New("the lock was gone before it was unlocked")

// gone returns errGone if a release found no lock.
func gone(found bool, err error) error {
	if err == nil && !found {
		err = errGone
	}
	return err
}
