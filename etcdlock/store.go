package etcdlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/callbacks"
)

// DefaultPrefix precedes all keys of a Store in etcd, unless Options.Prefix is set.
const DefaultPrefix = "holdfast/"

// MinTTL is the shortest TTL of a claim. etcd counts leases in whole seconds, and
// members grant at least two.
const MinTTL = 2 * time.Second

// closeLimit bounds the closing of a client.
const closeLimit = time.Second

var (
	errClosed = errors.New("etcd store is closed")
	errRaise  = fmt.Errorf("%w: etcd gives tokens by its own order, and none that is asked for", driver.ErrInvalid)
)

// Options configure a Store. nil means the defaults.
type Options struct {
	// Prefix precedes every key in etcd; "" means DefaultPrefix. It ends with a slash.
	// Stores with the same prefix share their locks.
	Prefix string
}

// A Store keeps claims in etcd. Make one with New.
type Store struct {
	client      *clientv3.Client
	owned       []*clientv3.Client // the clients created for this Store
	leaseClient etcdserverpb.LeaseClient
	names       names
	id          string // names this Store in etcd
	combiner    combiner
	past        past
	stream      atomic.Int64 // of new watches
	tombs       tombs
	born        time.Time
	clock       *boottime.Clock

	ctx     context.Context // ends with Close, or when etcd was replaced; calls then return its cause
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	kick    chan struct{} // wakes the cleaner
	losses  callbacks.Losses

	mu        sync.Mutex
	closed    bool
	table     map[string]*claim // by id
	named     map[string]*claim // by name
	asks      map[string]*ask   // under way, by id
	epoch     int               // of names
	schedule  schedule
	armed     time.Time // of the cleaner's next check
	leftovers []*claim  // claims that the cleaner has to remove from etcd, the longest waiting first
	leases    map[int64]*lease
	folders   map[string]*folder
	turns     map[string]*turn // by id
	crowds    map[string]crowd // by key
	notices   chan struct{}    // closed when the watch on the notices has begun; nil before the first Notify
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a Store that uses the caller's client. New does no I/O, and Close leaves
// the client open. Bad options are [driver.ErrInvalid]. Set DialKeepAliveTime of the
// client, or a hanging member is not noticed soon.
func New(client *clientv3.Client, opts *Options) (*Store, error) {
	prefix := DefaultPrefix
	if opts != nil && opts.Prefix != "" {
		prefix = opts.Prefix
	}
	if err := checkPrefix(prefix); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	s := &Store{
		client:      client,
		leaseClient: etcdserverpb.NewLeaseClient(client.ActiveConnection()),
		names:       names{prefix},
		id:          rand.Text(),
		tombs:       tombs{sem: make(chan struct{}, 1)},
		born:        time.Now(),
		clock:       boottime.New(),
		kick:        make(chan struct{}, 1),
		table:       make(map[string]*claim),
		named:       make(map[string]*claim),
		asks:        make(map[string]*ask),
		leases:      make(map[int64]*lease),
		folders:     make(map[string]*folder),
		turns:       make(map[string]*turn),
		crowds:      make(map[string]crowd),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.combiner = combiner{client: client, ctx: s.ctx, running: &s.running}
	s.running.Go(s.runCleaner)
	return s, nil
}

func checkPrefix(prefix string) error {
	if !strings.HasSuffix(prefix, "/") || len(prefix) > 256 {
		return fmt.Errorf("prefix %q: want up to 256 bytes that end with a slash", prefix)
	}
	return nil
}

// now is the clock for leases, here as in etcd. Nobody can set the clock, and it
// continues while the machine is suspended.
func (s *Store) now() time.Time { return s.born.Add(s.clock.Now()) }

// usable returns an error if the Store cannot be used.
func (s *Store) usable() error {
	return context.Cause(s.ctx)
}

// check refuses claims the Store cannot keep.
func check(a driver.Ask) error {
	switch {
	case a.Weight < 1 || a.Weight > a.Limit || a.Limit > driver.MaxWeight:
		return fmt.Errorf("%w: weight %d of %d (want a weight from 1 to the limit, a limit up to %d)", driver.ErrInvalid, a.Weight, a.Limit, int64(driver.MaxWeight))
	case a.TTL < MinTTL:
		return fmt.Errorf("%w: a TTL of %v is shorter than %v, the least for etcd", driver.ErrInvalid, a.TTL, MinTTL)
	case a.Fence != 0:
		return errRaise
	}
	return nil
}

// Close ends the watches of the Store and makes later calls fail. Claims stay until
// they expire, waiting claims included. A client passed to New stays open. A second
// Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	var unused []*lease
	for _, l := range s.leases {
		if l.claims == 0 && l.id != 0 {
			unused = append(unused, l)
		}
	}
	s.combiner.mu.Lock() // A batch begins before Wait, or never.
	s.cancel(errClosed)
	s.combiner.mu.Unlock()
	for _, f := range s.folders {
		if f.linger != nil {
			f.linger.Stop()
		}
	}
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.running.Wait()
	var revoking sync.WaitGroup
	for _, l := range unused {
		revoking.Go(func() { _ = s.revoke(l.id) })
	}
	revoking.Wait()
	var errs []error
	for _, client := range s.owned {
		errs = append(errs, closeClient(client))
	}
	return errors.Join(errs...)
}

// closeClient closes a client. Version 3.6 of the client hangs in Close if etcd has just
// refused a watch, for example for a missing right.
func closeClient(client *clientv3.Client) error {
	done := make(chan error, 1)
	go func() { done <- client.Close() }()
	select {
	case err := <-done:
		return err
	case <-time.After(closeLimit):
		err := client.ActiveConnection().Close()
		if status.Code(err) == codes.Canceled {
			return nil // The client has closed the connection by itself.
		}
		return err
	}
}
