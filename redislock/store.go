package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/callbacks"
	"github.com/holdfast-go/holdfast/redislock/internal/luascript"
	"github.com/holdfast-go/holdfast/redislock/internal/refused"
)

// DefaultPrefix stands before all keys and channels of a Store in Redis unless [Options]
// say otherwise.
const DefaultPrefix = "holdfast:"

const (
	minTTL   = time.Millisecond
	lateness = 10 * time.Second // how long an Acquire may be on its way after its Release
)

var errClosed = errors.New("redis store is closed")

// Options say how a Store uses Redis. nil means the defaults.
type Options struct {
	// Prefix stands before every key and channel in Redis; "" means DefaultPrefix. Stores
	// with the same prefix share their locks. A prefix must not have braces.
	Prefix string

	// Wait is how many replicas must have a grant or a renewal before the write counts.
	// See the package comment for the benefit. 0 waits for no replica.
	Wait int
}

// A Store keeps claims in Redis. Make one with [New].
type Store struct {
	conn    Conn
	names   names
	wait    int
	client  string  // names this Store in its channels
	channel Channel // for losses; except in a Cluster, also for grants
	losses  callbacks.Losses
	age     age
	proof   proof

	warnings []string // of the URL

	acquires, releases *combiner // nil in a Cluster, and with Options.Wait

	mu            sync.Mutex
	closed        bool
	ctx           context.Context // ends with Close
	cancel        context.CancelFunc
	subscriptions map[Channel]*subscription
	running       sync.WaitGroup
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
	_ driver.Ager      = (*Store)(nil)
)

// New returns a Store on the caller's client: a single server, a Sentinel or a Cluster.
// New does no I/O, and Close leaves the client alone. Bad options are [driver.ErrInvalid].
func New(client rueidis.Client, opts *Options) (*Store, error) {
	return NewConn(Rueidis(client), opts)
}

// NewConn is New for another client library.
func NewConn(conn Conn, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	s := &Store{
		conn:          conn,
		names:         names{opts.Prefix, conn.Cluster()},
		wait:          opts.Wait,
		client:        rand.Text(),
		proof:         proof{turn: make(chan struct{}, 1)},
		subscriptions: make(map[Channel]*subscription),
	}
	if s.names.prefix == "" {
		s.names.prefix = DefaultPrefix
	}
	if err := errors.Join(checkPrefix(s.names.prefix), checkWait(s.wait)); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	s.channel = s.lossChannel(s.client)
	if !conn.Cluster() && s.wait == 0 {
		s.acquires = &combiner{conn: conn, script: acquireManyScript(), call: s.acquireMany}
		s.releases = &combiner{conn: conn, script: releaseManyScript(), call: s.releaseMany}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

func checkWait(replicas int) error {
	if replicas < 0 || replicas > 100 {
		return fmt.Errorf("wait for %d replicas: want 0 to 100", replicas)
	}
	return nil
}

// Acquire implements [driver.Store].
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if err := errors.Join(s.usable(), check(a.Claim)); err != nil {
		return driver.Grant{}, err
	}
	if err := s.prove(ctx); err != nil {
		return driver.Grant{}, err
	}
	push := s.listening(ctx, a)
	if s.acquires != nil {
		r, joined, done := s.acquires.join(ctx, a.Key, a.ID, a.Fence, termsOf(a))
		if joined {
			return granted(r, a, s.names)
		}
		defer done()
	}
	return granted(s.eval(ctx, acquireScript(), s.acquire(a, push)), a, s.names)
}

// acquire returns the call of the script for one claim. push says how to reach a waiter.
func (s *Store) acquire(a driver.Ask, push string) Command {
	return acquireScript().call(s.names.all(a.Key, a.ID),
		a.ID, itoa(a.Weight), itoa(a.Limit), micros(a.TTL), micros(a.Alive()), flag(a.Wait),
		strconv.Itoa(span(a)), strconv.FormatUint(a.Fence, 10), push, details{s.client, a.Owner, a.Note}.String())
}

// span is how many tokens an Ask requests. Readers share one token.
func span(a driver.Ask) int {
	if a.Shared() {
		return 1
	}
	return min(max(a.Span, 1), driver.MaxSpan)
}

// usable says why the Store cannot be used.
func (s *Store) usable() error {
	if s.ctx.Err() != nil {
		return errClosed
	}
	return nil
}

// check refuses invalid claims.
func check(c driver.Claim) error {
	switch {
	case c.Weight < 1 || c.Weight > c.Limit || c.Limit > driver.MaxWeight:
		return fmt.Errorf("%w: weight %d of %d (want a weight from 1 to the limit, a limit up to %d)", driver.ErrInvalid, c.Weight, c.Limit, int64(driver.MaxWeight))
	case c.TTL < minTTL:
		return fmt.Errorf("%w: a TTL of %v is shorter than %v", driver.ErrInvalid, c.TTL, minTTL)
	}
	return nil
}

// Release implements [driver.Store].
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	errs := make([]error, len(rs))
	if err := s.usable(); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	if len(rs) == 1 && s.releases != nil && !rs[0].Late {
		reply, joined, done := s.releases.join(ctx, rs[0].Key, rs[0].ID, 0, terms{})
		if joined {
			errs[0] = kept(reply, rs[0].Key)
			return errs
		}
		defer done()
	}
	calls := make([]Command, len(rs))
	for i, r := range rs {
		late := time.Duration(0)
		if r.Late {
			late = lateness
		}
		calls[i] = releaseScript().call(s.names.all(r.Key, r.ID), r.ID, itoa(late.Milliseconds()))
	}
	for i, reply := range eval(ctx, s.conn, releaseScript(), calls...) {
		errs[i] = kept(reply, rs[i].Key)
	}
	return errs
}

// eval runs a script and, if Options.Wait is set, waits for the replicas.
func (s *Store) eval(ctx context.Context, sc script, call Command) Reply {
	if s.wait == 0 {
		return eval(ctx, s.conn, sc, call)[0]
	}
	r, confirmed := s.conn.Confirm(ctx, call, s.wait)
	if luascript.IsUnknown(r.Err) {
		r, confirmed = s.conn.Confirm(ctx, sc.whole(call), s.wait)
	}
	switch {
	case r.Err != nil:
		r.Err = refused.Explain(r.Err, sc.text, call.Keys)
	case confirmed < int64(s.wait):
		r.Err = fmt.Errorf("%d of the %d replicas asked for have confirmed the write", confirmed, s.wait)
	}
	return r
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return ""
}

func micros(d time.Duration) string { return itoa(d.Microseconds()) }
