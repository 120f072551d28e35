package once

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/shown"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// Limits of the arguments.
const (
	MaxKey         = driver.MaxKey - len(lockPrefix) // bytes, less the Locker's own prefix
	MaxFingerprint = 256                             // bytes
	MaxResult      = 1 << 20                         // bytes
	MaxRetention   = 10 * 366 * 24 * time.Hour
)

const (
	lockPrefix = "once/"
	usual      = 24 * time.Hour // default retention

	// unfinished is the minimum time for which a begun effect is remembered. An effect
	// that runs longer than remembered cannot be finished.
	unfinished = 24 * time.Hour

	patience = 10 * time.Second // limit for records that do not answer
	bound    = 3 * time.Second  // limit of a single call to the records, whose caller may be gone
)

// Options are the settings of an effect. The zero value is ready to use.
type Options struct {
	// Fingerprint distinguishes uses of the same key, such as a hash of the request, in
	// up to 256 bytes. A key begun with a different fingerprint is refused with
	// [ErrMismatch].
	Fingerprint string

	// Retention is how long the result is remembered, from 1ms to ten years. Default
	// 24h. A begun effect is remembered for the same time, but for at least 24h, and
	// must finish in that time.
	Retention time.Duration
}

// An Effect is the right to run an effect once, or the result of an earlier run. Always
// close an Effect. All methods may be called from many goroutines.
type Effect struct {
	key       string
	records   Records
	retention time.Duration
	token     uint64
	result    []byte
	lock      *holdfast.Lock // nil if the effect was done before

	mu      sync.Mutex
	settled bool // Finish was tried: only the records know the outcome
	closed  bool
}

// Begin returns the effect of a key: either done, with its result, or owned by the
// caller. The owner runs the effect, calls [Effect.Finish] and always calls
// [Effect.Close].
//
//	effect, err := once.Begin(ctx, locks, records, key, once.Options{})
//	if err != nil {
//		return err
//	}
//	defer effect.Close()
//	if result, done := effect.Result(); done {
//		return reply(result)
//	}
//	result, err := charge(effect.Context(ctx))
//	if err != nil {
//		return err // nothing is remembered
//	}
//	return effect.Finish(ctx, result)
//
// While another process owns the effect, Begin waits as [holdfast.Locker.Lock] does:
// until ctx ends, or for the time of [holdfast.Wait] among the options. Begin then
// returns an error that matches [holdfast.ErrHeld]. If the owner dies, a waiting or later
// caller takes over after the TTL of the lock. If the records do not answer within ten
// seconds, Begin returns an error. If the records answer after the lock was lost, the
// error matches [holdfast.ErrLost], and the caller may try again.
//
// The key has 1 to 507 bytes of UTF-8, less the Locker's own prefix. Begin locks the
// key as "once/" + key. The options are the options of Lock. [holdfast.Shared],
// [holdfast.Slots] and [holdfast.Reenter] are refused, because an effect could then
// have two owners. A lock store without fencing tokens is refused with
// [holdfast.ErrNotFenced], a bad key with [holdfast.ErrInvalidKey], and other bad input with
// [holdfast.ErrInvalid].
func Begin(ctx context.Context, locks *holdfast.Locker, records Records, key string, opts Options, lockOpts ...holdfast.LockOption) (*Effect, error) {
	e := &Effect{key: key, records: records, retention: opts.Retention}
	if e.retention == 0 {
		e.retention = usual
	}
	if err := e.check(opts); err != nil {
		return nil, e.failed("begin", err)
	}
	before, err := e.load(ctx) // a repeated call for a done effect needs no lock
	if err != nil {
		return nil, e.failed("begin", err)
	}
	if before.State != Free && before.Fingerprint != opts.Fingerprint {
		return nil, e.failed("begin", ErrMismatch)
	}
	if before.State == Done {
		e.result = before.Result
		return e, nil
	}
	lock, err := locks.Lock(ctx, lockPrefix+key, alone(lockOpts)...)
	if err != nil {
		return nil, err
	}
	if err := e.begin(ctx, lock, opts.Fingerprint); err != nil {
		unlocked := bounded.Within(ctx, lock.Unlock) // a silent store takes seconds
		if errors.Is(err, holdfast.ErrLost) {
			unlocked = nil // err already reports the loss
		}
		return nil, e.failed("begin", errors.Join(err, unlocked))
	}
	return e, nil
}

func (e *Effect) load(caller context.Context) (Record, error) {
	ctx, cancel := context.WithTimeout(caller, patience)
	defer cancel()
	r, err := e.records.Load(ctx, e.key)
	return r, silence.For(caller, err, patience)
}

// begin asks the records whether the holder of the lock owns the effect.
func (e *Effect) begin(caller context.Context, lock *holdfast.Lock, fingerprint string) error {
	e.token = lock.Fence()
	if e.token == 0 {
		return lock.Err()
	}
	ctx, cancel := context.WithTimeout(caller, patience)
	defer cancel()
	r, err := e.records.Begin(lock.Context(ctx), e.key, e.token, fingerprint, max(e.retention, unfinished))
	switch {
	case err == nil && r.Fingerprint != fingerprint:
		return ErrMismatch
	case err == nil && r.State == Done:
		e.result = r.Result
		_ = lock.Unlock() // The result is known, whatever happens to the lock.
		return nil
	case lock.Err() != nil: // Another process may have run the effect since.
		if errors.Is(err, context.Canceled) { // because the lock was lost
			err = nil
		}
		return errors.Join(lock.Err(), err)
	case err != nil:
		return silence.For(caller, err, patience)
	}
	e.lock = lock
	return nil
}

func (e *Effect) check(opts Options) error {
	if err := driver.CheckKey(e.key); err != nil {
		return &inputError{holdfast.ErrInvalidKey, err}
	}
	var words error
	switch {
	case len(e.key) > MaxKey:
		return &inputError{holdfast.ErrInvalidKey, fmt.Errorf("the key has %d bytes; it must have at most %d", len(e.key), MaxKey)}
	case len(opts.Fingerprint) > MaxFingerprint:
		words = fmt.Errorf("the fingerprint has %d bytes; it must have at most %d, such as a hash", len(opts.Fingerprint), MaxFingerprint)
	case e.retention < time.Millisecond || e.retention > MaxRetention:
		words = fmt.Errorf("the retention is %v; it must be from 1ms to %v", e.retention, MaxRetention)
	default:
		return nil
	}
	return &inputError{holdfast.ErrInvalid, words}
}

// alone adds the required lock options of an effect to opts.
func alone(opts []holdfast.LockOption) []holdfast.LockOption {
	return append([]holdfast.LockOption{holdfast.Exclusive(), holdfast.Fenced()}, opts...)
}

// Result reports whether the effect was done before, and returns its result if so.
func (e *Effect) Result() (result []byte, done bool) {
	return bytes.Clone(e.result), e.lock == nil
}

// Context returns a copy of parent that carries the lock and ends when the lock is lost
// (see [holdfast.Lock.Context]). If the effect was done before, Context returns parent
// itself.
func (e *Effect) Context(parent context.Context) context.Context {
	if e.lock == nil {
		return parent
	}
	return e.lock.Context(parent)
}

// Token returns the fencing token of the owner, larger than the token of every earlier
// owner of the key. If the effect was done before, Token returns 0. Unlike
// [holdfast.Lock.Fence], Token returns the token after the lock is lost, too.
func (e *Effect) Token() uint64 { return e.token }

// Finish remembers the result, of at most 1 MiB, for later callers of the key. Finish
// ignores the end of ctx, because the effect has already run. While the outcome is
// unknown, Finish retries, for up to about ten seconds.
//
// A lost lock does not keep Finish from succeeding, unless a later owner has begun since.
// Then the later owner's result counts, and the error matches [fence.ErrOutdated] and
// [holdfast.ErrLost]. Every error matches [ErrUnrecorded], unless the caller does not own
// the effect. After [ErrTooLarge] the caller may try a smaller result.
func (e *Effect) Finish(ctx context.Context, result []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.settle(result)
	switch {
	case errors.Is(err, ErrTooLarge):
		return e.failed("finish", e.unrecorded(err))
	case err != nil:
		return e.failed("finish", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err = persist(ctx, func(ctx context.Context) error {
		return e.records.Finish(ctx, e.key, e.token, result, e.retention)
	})
	if err != nil {
		return e.failed("finish", e.unrecorded(err))
	}
	return nil
}

// settle checks that the effect can be finished, and marks it as settled before the
// records are called. Call it with mu held.
func (e *Effect) settle(result []byte) error {
	switch {
	case e.lock == nil || e.closed:
		return errNotOwned
	case len(result) > MaxResult:
		return fmt.Errorf("%w: it has %d bytes; keep up to %d, and more elsewhere", ErrTooLarge, len(result), MaxResult)
	}
	e.settled = true
	return nil
}

// unrecorded wraps the error of an effect that has run but is not remembered.
func (e *Effect) unrecorded(err error) error {
	err = fmt.Errorf("%w: %w", ErrUnrecorded, err)
	if lost := e.lock.Err(); lost != nil {
		return errors.Join(err, lost)
	}
	return err
}

// persist retries a call until the answer is certain or ctx ends.
func persist(ctx context.Context, call func(context.Context) error) error {
	pause := 20 * time.Millisecond
	for {
		each, cancel := context.WithTimeout(ctx, bound)
		err := call(each)
		cancel()
		if err == nil || errors.Is(err, fence.ErrOutdated) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return silence.Of(err, patience)
		}
		pause = min(2*pause, time.Second)
	}
}

// Close releases the key. Unless Finish was called, nothing is remembered, and the next
// caller may run the effect. Close takes no context: a cancelled request still releases
// its key. Close takes a few seconds at most.
//
// Close returns an error that matches [holdfast.ErrLost] if the lock was lost before
// and Finish was not called. Then a second process may have run the effect, too. A
// second Close does nothing.
func (e *Effect) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lock == nil || e.closed {
		return nil
	}
	e.closed = true
	if e.settled {
		_ = e.lock.Unlock() // Finish has reported the outcome.
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	err := e.failed("close", silence.Of(e.records.Forget(ctx, e.key, e.token), bound))
	return errors.Join(err, e.lock.Unlock())
}

func (e *Effect) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("once: %s %s: %w", op, shown.Key(e.key), err)
}
