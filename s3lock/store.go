package s3lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// DefaultPrefix stands before the names of all objects unless Options say otherwise.
const DefaultPrefix = "holdfast/"

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
	register *register
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
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	if bucket == "" {
		return nil, fmt.Errorf("%w: the bucket has no name", driver.ErrInvalid)
	}
	if err := errors.Join(checkPrefix(o.Prefix), checkLook(o.Look)); err != nil {
		return nil, err
	}
	r := &register{client: client, bucket: bucket, prefix: o.Prefix}
	return &Store{Store: caslock.New(r, &caslock.Options{Look: o.Look}), register: r}, nil
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

const longestPrefix = 512

func checkPrefix(prefix string) error {
	bad := len(prefix) > longestPrefix || !utf8.ValidString(prefix) || strings.Contains("/"+prefix, "//") ||
		strings.Contains("/"+prefix, "/./") || strings.Contains("/"+prefix, "/../") || strings.ContainsFunc(prefix, unicode.IsControl)
	if bad || !strings.HasSuffix(prefix, "/") {
		return fmt.Errorf("%w: the prefix is %.80q (want at most %d bytes of UTF-8 with a slash at the end, such as %s)",
			driver.ErrInvalid, prefix, longestPrefix, DefaultPrefix)
	}
	return nil
}

const shortestLook = 10 * time.Millisecond

func checkLook(look time.Duration) error {
	if look != 0 && look < shortestLook {
		return fmt.Errorf("%w: Look is %v (want %v or longer, or 0 for half a second)", driver.ErrInvalid, look, shortestLook)
	}
	return nil
}

// Check implements [driver.Checker]. Check writes two objects with conditions that do not hold,
// and returns [driver.ErrInvalid] if the bucket accepts one of the writes: locks in such a bucket
// would have several holders. A bucket that has passed is not tested again.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	err = s.register.prove(ctx)
	if errors.Is(err, errNoBucket) {
		err = fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	return nil, err
}
