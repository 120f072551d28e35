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
	"github.com/holdfast-go/holdfast/internal/caller"
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

// check says what is wrong with the arguments of an effect.
func (e *Effect) check(fingerprint string) error {
	if err := caller.CheckKey(e.key); err != nil {
		return &inputError{holdfast.ErrInvalidKey, err}
	}
	var words error
	switch {
	case len(e.key) > MaxKey:
		return &inputError{holdfast.ErrInvalidKey, fmt.Errorf("the key has %d bytes; it must have at most %d", len(e.key), MaxKey)}
	case len(fingerprint) > MaxFingerprint:
		words = fmt.Errorf("the fingerprint has %d bytes; it must have at most %d, such as a hash", len(fingerprint), MaxFingerprint)
	case e.retention < time.Millisecond || e.retention > MaxRetention:
		words = fmt.Errorf("the retention is %v; it must be from 1ms to %v", e.retention, MaxRetention)
	default:
		return nil
	}
	return &inputError{holdfast.ErrInvalid, words}
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
	err := e.settleLocked(result)
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

// settleLocked checks that the effect can be finished, and marks it as settled before the
// records are called.
func (e *Effect) settleLocked(result []byte) error {
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
		if err == nil || errors.Is(err, fence.ErrOutdated) || errors.Is(err, driver.ErrInvalid) {
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
