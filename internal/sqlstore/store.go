// Package sqlstore is the store in a table, for packages sqllock, pglock, mysqllock,
// mssqllock and sqlitelock. Package sqllock documents how it works and what it promises. A package for an
// engine may bring a faster [Client], and a [Listener] that wakes waiters.
package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/detached"
)

// DefaultTable is the table if [Options] name no table.
const DefaultTable = "holdfast"

// Options say how a Store keeps its claims.
type Options struct {
	// Table is the name of the table, or schema.name, of letters, digits and _. The view
	// of the claims has the same name with _claims appended.
	Table string

	// Code returns the engine's code of an error. The default knows the clients that the
	// dialects name.
	Code func(error) string
}

// A Store keeps claims in a table. Make one with [New].
type Store struct {
	client  Client
	dialect *Dialect
	opts    Options
	compile func(string) string

	crowds   crowds
	takes    together[*taking]
	frees    together[*freeing]
	waiting  sync.Map        // ids of waiters: their Acquire skips the attempt for an uncontended key
	texts    sync.Map        // compiled statements by text
	calls    detached.Runner // see Dialect.lasting
	deciding mutex           // see Dialect.oneWriter; otherwise nil
	writing  mutex           // the same, for one statement
	inserted atomic.Uint64
	began    atomic.Int64 // by the clock, see now

	freed  func(key string, b *book.Book) // called after a claim has left a queue or had waiters; may be nil
	closed atomic.Bool
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Creator   = (*Store)(nil)
)

var errClosed = errors.New("SQL store is closed")

// New returns a store in the table of a client, which [Store.Create] makes. New does no I/O;
// the store closes the client. opts may be nil.
func New(client Client, d *Dialect, opts *Options) (*Store, error) {
	s := &Store{client: client, dialect: d, crowds: crowds{seed: maphash.MakeSeed()}}
	s.calls.Conns = client.Conns
	s.takes.some, s.takes.turn, s.takes.alone = s.takeSome, s.turn, s.locked
	s.takes.most = func() int { return s.statements(mostTakes) }
	s.frees.some, s.frees.turn, s.frees.alone = s.freeSome, atOnce, s.locked
	s.frees.most = func() int { return s.statements(mostFrees) }
	if d.oneWriter {
		s.deciding, s.writing = make(mutex, 1), make(mutex, 1)
	}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Table == "" {
		s.opts.Table = DefaultTable
	}
	if s.opts.Code == nil {
		s.opts.Code = d.code
	}
	var err error
	if s.compile, err = d.compiler(s.opts.Table); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	return s, nil
}

// Acquire implements [driver.Store]. An uncontended key takes one statement. So does a
// retry that still has to wait, mostly.
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	got, err := s.acquire(ctx, asking{Ask: a})
	return got.grant, err
}

func (s *Store) acquire(ctx context.Context, a asking) (got answer, err error) {
	a.Span = max(a.Span, 1) // as the row has it
	ask := func(ctx context.Context) (answer, error) { return s.ask(ctx, a) }
	switch {
	case s.dialect.shares():
		got, err = detached.Run(ctx, &s.calls, a.ID, ask)
	case s.dialect.lasting:
		got, err = detached.Do(ctx, &s.calls, a.ID, ask)
	default:
		got, err = ask(ctx)
	}
	if err != nil {
		return answer{}, err
	}
	// Not earlier: a caller that has left may have released the claim meanwhile.
	if got.queued {
		s.waiting.Store(a.ID, true)
	} else {
		s.waiting.Delete(a.ID)
	}
	return got, nil
}

// ask sends the statements of Acquire.
func (s *Store) ask(ctx context.Context, a asking) (got answer, err error) {
	crowded, load := s.crowds.of(a.Key), s.glance(a.ID)
	if _, waits := s.waiting.Load(a.ID); !waits && a.Fence == 0 && a.Weight >= 1 && a.Weight <= a.Limit && a.Limit <= driver.MaxWeight && a.TTL > 0 {
		if crowded.Load() == 0 {
			if g, err := s.take(ctx, &a); g.OK || err != nil {
				return answer{grant: g}, err
			}
		}
		load = s.joiner(&a, int(crowded.Load()))
	}
	leave, err := s.turn(ctx)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	if err = s.decide(ctx, a.Key, load, a.rule(ctx, &got)); err == nil {
		crowded.Store(int32(got.crowd))
	}
	return got, err
}

// turn waits for a slot, if the call has none yet.
func (s *Store) turn(ctx context.Context) (leave func(), err error) {
	if s.dialect.shares() {
		return s.calls.Turn(ctx)
	}
	return atOnce(ctx)
}

// statements is how many statements keep others waiting, most at most.
func (s *Store) statements(most int) int {
	if s.dialect.oneWriter {
		return 1
	}
	return min(most, s.calls.Slots())
}

func atOnce(context.Context) (leave func(), err error) { return func() {}, nil }

// Close closes the client. A database stays open, and claims stay. Statements that
// Acquire has sent run to their end first, for a second at most.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.calls.Close()
	return s.client.Close()
}
