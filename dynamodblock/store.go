package dynamodblock

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional"
)

// DefaultPrefix stands before the names of all items unless Options say otherwise.
const DefaultPrefix = "holdfast"

// Options say how a Store uses its table. nil means the defaults.
type Options struct {
	// Prefix stands before the names of all items, and a slash follows it. It has at most 255
	// bytes of UTF-8 without a slash, and does not begin with a dot. Stores with the same table
	// and prefix share their locks. Empty means DefaultPrefix.
	Prefix string

	// Look is the pause between two reads of a key by the first waiter of its queue, from
	// 10ms on. Waiters at place n pause n times as long. 0 means half a second.
	Look time.Duration
}

// A Store keeps claims in a table. Make a Store with New.
type Store struct {
	*caslock.Store
	register *register
	close    func() // closes the connections of a client of the Store's own
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Creator   = (*Store)(nil)
)

// New returns a Store in a table, which [Store.Create] makes. New does no I/O. The Store uses the
// client with all its settings, but never lets the client retry: a retry of a write whose answer
// was lost would be refused by its own first attempt. Bad options are [driver.ErrInvalid].
//
// Before the first write, the Store tests whether the engine keeps the conditions of writes, as
// [Store.Check] describes.
func New(client *dynamodb.Client, table string, opts *Options) (*Store, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	if table == "" {
		return nil, fmt.Errorf("%w: the table has no name", driver.ErrInvalid)
	}
	if err := errors.Join(checkPrefix(o.Prefix), conditional.CheckLook(o.Look)); err != nil {
		return nil, err
	}
	r := &register{client: client, table: table, prefix: o.Prefix}
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

const longestPrefix = 255

func checkPrefix(prefix string) error {
	if len(prefix) > longestPrefix || !utf8.ValidString(prefix) || strings.HasPrefix(prefix, ".") ||
		strings.Contains(prefix, "/") || strings.ContainsFunc(prefix, unicode.IsControl) {
		return fmt.Errorf("%w: the prefix is %.80q (want at most %d bytes of UTF-8 without a slash or a dot at the beginning, such as %s)",
			driver.ErrInvalid, prefix, longestPrefix, DefaultPrefix)
	}
	return nil
}
