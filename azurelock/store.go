package azurelock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
	"github.com/holdfast-go/holdfast/internal/objects"
)

// DefaultPrefix stands before the names of all blobs unless Options say otherwise: holdfast/.
const DefaultPrefix = objects.DefaultPrefix

// Options say how a Store uses its container. nil means the defaults.
type Options struct {
	// Prefix stands before the names of all blobs, and ends with a slash. It has at most 512
	// bytes. Stores with the same container and prefix share their locks. Empty means
	// DefaultPrefix.
	Prefix string

	// Look is the pause between two reads of a key by the first waiter of its queue, from
	// 10ms on. Waiters at place n pause n times as long. 0 means half a second.
	Look time.Duration
}

// A Store keeps claims in a container. Make a Store with New.
type Store struct {
	*caslock.Store
	register *objects.Register
	plain    string // the host that receives a SAS token by http; "" if there is none
	close    func() // closes the connections of a client of the Store's own
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a Store in a container that exists. New does no I/O. Bad options and a bad Container
// are [driver.ErrInvalid].
//
// Before the first write, the Store tests whether the container keeps the conditions of writes, as
// [Store.Check] describes.
func New(c *Container, opts *Options) (*Store, error) {
	var o objects.Options
	if opts != nil {
		o = objects.Options(*opts)
	}
	in, r, err := c.register(o)
	if err != nil {
		return nil, err
	}
	s := &Store{Store: caslock.New(r, &caslock.Options{Look: o.Look}), register: r}
	if in.sas != "" && in.at.Scheme == "http" {
		s.plain = in.at.Host
	}
	return s, nil
}

func (c *Container) register(o objects.Options) (*service, *objects.Register, error) {
	s, err := c.service()
	if err != nil {
		return nil, nil, err
	}
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	return s, objects.New(s, o), nil
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

// Check implements [driver.Checker]. Check writes two blobs with conditions that do not hold,
// and returns [driver.ErrInvalid] if the container accepts one of the writes: locks in such a
// container would have several holders. A container that has passed is not tested again. Check warns
// of a SAS token that travels to another host by http.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	if s.plain != "" {
		warnings = hosturl.Plain([]string{s.plain}, "use an endpoint that begins with https://")
	}
	return warnings, s.register.Check(ctx)
}
