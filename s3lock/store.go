package s3lock

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/objects"
)

// DefaultPrefix stands before the names of all objects unless Options say otherwise: "holdfast/".
const DefaultPrefix = objects.DefaultPrefix

// Options say how a Store uses its bucket. nil means the defaults.
type Options struct {
	// Prefix stands before the names of all objects, and ends with a slash. It has at most 512
	// bytes. Stores with the same bucket and prefix share their locks. Empty means
	// DefaultPrefix.
	Prefix string

	// Look is the pause between two reads of a key by the first waiter of its queue, from
	// 10ms on. Waiters at place n pause n times as long. 0 means half a second.
	Look time.Duration
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

// New returns a Store in a bucket that exists. New does no I/O. The Store uses the client with
// all its settings, but never lets the client retry: a retry of a write whose answer was lost
// would be refused by its own first attempt. Bad options are [driver.ErrInvalid].
//
// Before the first write, the Store tests whether the bucket keeps the conditions of writes, as
// [Store.Check] describes.
func New(client *s3.Client, bucket string, opts *Options) (*Store, error) {
	var o objects.Options
	if opts != nil {
		o = objects.Options(*opts)
	}
	r, err := register(client, bucket, o)
	if err != nil {
		return nil, err
	}
	return &Store{Store: caslock.New(r, &caslock.Options{Look: o.Look}), register: r}, nil
}

func register(client *s3.Client, name string, o objects.Options) (*objects.Register, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: the bucket has no name", driver.ErrInvalid)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return objects.New(&service{client: client, name: name}, o), nil
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
