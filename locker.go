package holdfast

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A Locker acquires locks in one store. All methods may be called from many goroutines.
// Use one Locker per process and store: the goroutines of the process then take turns
// among themselves, and only one per key sends requests to the store.
type Locker struct {
	store   driver.Store
	watcher driver.Watcher // nil if the store cannot push
	deaf    atomic.Bool    // the last watch failed
	opts    Options
	bad     error // what is wrong with the options
	clock   *boottime.Clock
	unsub   func() // ends the store's loss notices

	mu      sync.Mutex
	turns   map[string]*turn
	spare   []*turn // for reuse
	waiters sync.Pool
	ids     *mathrand.ChaCha8
	closed  bool
	closing chan struct{} // closed by Close
	renewer renewer
	cleaner cleaner
	busy    sync.WaitGroup // calls that may still use the store
}

// New returns a Locker on a store. New does no I/O. If an option is bad, every call that
// acquires a lock returns an error. nil means the default options.
//
// Close the Locker when it is no longer needed; Close closes the store too.
func New(store driver.Store, opts *Options) *Locker {
	lk := &Locker{
		store:   store,
		clock:   boottime.New(),
		ids:     newIDs(),
		turns:   make(map[string]*turn),
		closing: make(chan struct{}),
	}
	if s, ok := store.(boottime.Simulator); ok {
		lk.clock = s.Clock()
	}
	lk.opts, lk.bad = opts.resolve()
	lk.renewer.init(lk)
	lk.cleaner.lk = lk
	lk.watcher, _ = store.(driver.Watcher)
	if n, ok := store.(driver.Notifier); ok {
		lk.unsub = n.Notify(lk.notified)
	}
	return lk
}

// Open returns a Locker on the store that a URL names, such as file:///var/lib/app/locks.
// The package of the store must be imported. An unknown scheme or parameter is an error;
// errors never show a password. The URL that the application uses for its database or its
// Redis works as it is.
//
// If the server does not answer, Open fails after a few seconds. If the server cannot be
// reached, or ctx ends, Open fails sooner.
//
// If the store can check the setup of its engine, Open logs a warning for every setting
// that weakens the promises of the store. Open fails, with an error that matches
// [driver.ErrInvalid], if no lock can be acquired before somebody has prepared the engine,
// as "holdfast init" makes the table in a database. The check takes two seconds at most.
// A store that does not answer the check in time does not make Open fail.
func Open(ctx context.Context, rawURL string, opts *Options) (*Locker, error) {
	if _, err := opts.resolve(); err != nil {
		return nil, err
	}
	began := time.Now()
	store, err := driver.Open(ctx, rawURL)
	if err != nil {
		return nil, silence.For(ctx, err, time.Since(began))
	}
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	lk := New(store, opts)
	if err := lk.check(ctx, driver.Redact(u)); err != nil {
		return nil, errors.Join(err, lk.Close())
	}
	return lk, nil
}

// checkLimit bounds how long a store may take to check the setup of its engine.
const checkLimit = 2 * time.Second

// check logs the settings that weaken the promises of the named store. It returns an error
// if the store can keep no lock with its engine as it is set up.
func (lk *Locker) check(ctx context.Context, name string) error {
	checker, ok := lk.store.(driver.Checker)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	warnings, err := checker.Check(ctx)
	for _, w := range warnings {
		lk.log(slog.LevelWarn, "a setting of the store weakens its promises", "store", name, "warning", w)
	}
	if errors.Is(err, driver.ErrInvalid) {
		return fmt.Errorf("open %s: %w", name, err)
	}
	if err != nil {
		lk.log(slog.LevelDebug, "cannot check the settings of the store", "store", name, "error", err)
	}
	return nil
}

// Close ends all waits with [ErrClosed], unlocks every lock, and closes the store. Later
// calls return ErrClosed, except Close, which returns nil. Close takes a few seconds at
// most, even if the store does not answer; a lock that could not be released ends with its
// TTL.
func (lk *Locker) Close() error {
	locks, dropped, ok := lk.shut()
	if !ok {
		return nil
	}
	for _, l := range dropped {
		l.dropped()
	}
	err := lk.unlockAll(locks)
	lk.busy.Wait()
	lk.renewer.stop()
	if lk.unsub != nil {
		lk.unsub()
	}
	return errors.Join(err, lk.store.Close())
}

// shut rejects new calls and ends every wait. shut returns the held locks and the leases
// of dropped locks; ok is false if the Locker was closed before.
func (lk *Locker) shut() (held []*Lock, dropped []*lease, ok bool) {
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lk.closed {
		return nil, nil, false
	}
	lk.closed = true
	close(lk.closing)
	for _, t := range lk.turns {
		for w := t.line.first; w != nil; w = t.line.first {
			t.line.remove(w)
			w.closed = true
			w.call(nil, nil)
		}
		for _, l := range t.leases {
			if lock := l.holder(); lock != nil {
				held = append(held, lock)
			} else {
				dropped = append(dropped, l)
			}
		}
	}
	return held, dropped, true
}

// now is the time since the Locker was made, time asleep included.
func (lk *Locker) now() time.Duration { return lk.clock.Now() }

// shown is a stored key as the caller knows it.
func (lk *Locker) shown(key string) string { return key[len(lk.opts.Prefix):] }

// newID returns a claim id: 128 random bits, never used again. Call newID with mu held.
func (lk *Locker) newID() string {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], lk.ids.Uint64())
	binary.NativeEndian.PutUint64(id[8:], lk.ids.Uint64())
	var text [32]byte
	hex.Encode(text[:], id[:])
	return string(text[:])
}

// newIDs returns the source of ids: a cipher stream, because a system call for every id
// would take longer than all the rest of an uncontended lock.
func newIDs() *mathrand.ChaCha8 {
	var seed [32]byte
	rand.Read(seed[:]) // never fails
	return mathrand.NewChaCha8(seed)
}

// log logs events that no call can return. Without a Logger, events from Warn on go to
// the default logger of the moment, because programs set the default late.
func (lk *Locker) log(level slog.Level, message string, args ...any) {
	to := lk.opts.Logger
	switch {
	case to == nil && level < slog.LevelWarn:
		return
	case to == nil:
		to = slog.Default()
	}
	to.Log(context.Background(), level, message, args...)
}
