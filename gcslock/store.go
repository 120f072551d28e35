package gcslock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/objects"
)

// DefaultPrefix stands before the names of all objects unless Options say otherwise.
const DefaultPrefix = objects.DefaultPrefix

// Scope is the OAuth scope that the credentials need.
const Scope = "https://www.googleapis.com/auth/devstorage.read_write"

// Options say how a Store uses its bucket. nil means the defaults.
type Options struct {
	// Prefix stands before the names of all objects, and ends with a slash. It has at most 512
	// bytes. Stores with the same bucket and prefix share their locks. Empty means
	// DefaultPrefix.
	Prefix string

	// Look is the pause between two reads of a key by the first waiter of its queue, from
	// 10ms on. Waiters at place n pause n times as long. 0 means half a second.
	Look time.Duration

	// Endpoint is the service. Empty means https://storage.googleapis.com. A client with
	// credentials sends them there, even to an endpoint that begins with http://.
	Endpoint string
}

// A Store keeps claims in a bucket. Make a Store with New.
type Store struct {
	*caslock.Store
	register *objects.Register
	close    func() // closes the connections of a client of the Store's own
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a Store in a bucket that exists. New does no I/O. The client adds the credentials,
// as a client of google.DefaultClient with Scope does. The client must not repeat requests: a
// repeated write whose first answer was lost would be refused by its own first attempt. The Store
// follows no redirects. Bad options are [driver.ErrInvalid].
//
// Before the first write, the Store tests whether the bucket keeps the conditions of writes, as
// [Store.Check] describes.
func New(client *http.Client, bucket string, opts *Options) (*Store, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	r, err := register(client, bucket, o)
	if err != nil {
		return nil, err
	}
	return &Store{Store: caslock.New(r, &caslock.Options{Look: o.Look}), register: r}, nil
}

func register(client *http.Client, bucket string, o Options) (*objects.Register, error) {
	if !bucketName.MatchString(bucket) {
		return nil, fmt.Errorf("%w: the bucket is %.80q", driver.ErrInvalid, bucket)
	}
	s, err := newService(client, bucket, o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	plain := objects.Options{Prefix: o.Prefix, Look: o.Look}
	if err := plain.Check(); err != nil {
		return nil, err
	}
	return objects.New(s, plain), nil
}

// Acquire implements [driver.Store]. While the service accepts no write because the object changes
// too often, Acquire refuses the claim, and Blocked of the grant says so.
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	g, err := s.Store.Acquire(ctx, a)
	if errors.Is(err, errThrottled) {
		return driver.Grant{Pause: time.Second, Blocked: errThrottled}, nil
	}
	return g, err
}

// Close ends the watches. Claims stand until their TTL ends. A client that the caller gave to New
// stays open.
func (s *Store) Close() error {
	err := s.Store.Close()
	if s.close != nil {
		s.close()
	}
	return err
}

// Check implements [driver.Checker]. Check writes two objects with conditions that do not hold,
// and returns [driver.ErrInvalid] if the bucket accepts one of the writes: locks in such a bucket
// would have several holders. A bucket that has passed is not tested again.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	return nil, s.register.Check(ctx)
}
