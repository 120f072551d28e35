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
)

// Bounds of what callers may ask for.
const (
	MaxKey         = driver.MaxKey - len(lockPrefix) // bytes, less the Locker's own prefix
	MaxFingerprint = 256                             // bytes
	MaxResult      = 1 << 20                         // bytes
	MaxRetention   = 10 * 366 * 24 * time.Hour
)

const (
	lockPrefix = "once/"
	usual      = 24 * time.Hour // of retention

	// unfinished is how long it is remembered at least that an effect was begun.
	// One that takes longer cannot be finished.
	unfinished = 24 * time.Hour

	patience = 10 * time.Second // with records that do not answer
	bound    = 3 * time.Second  // of one call to records whose caller may be gone
)

// Options are the settings of an effect. The zero value is ready to use.
type Options struct {
	// Fingerprint tells one use of the key from another, such as a hash of what
	// was asked for, in up to 256 bytes. A key that was begun with another one is
	// refused with [ErrMismatch].
	Fingerprint string

	// Retention is how long the result is remembered, from 1ms to ten years.
	// Default 24h. An effect that has begun is remembered for as long, but at
	// least for 24h, in which it must finish.
	Retention time.Duration
}

// An Effect is the right to run something once, or the result of what ran
// before. Close it in any case. All its methods may be called from many
// goroutines.
type Effect struct {
	key       string
	records   Records
	retention time.Duration
	token     uint64
	result    []byte
	lock      *holdfast.Lock // nil if it was done before

	mu      sync.Mutex
	settled bool // Finish has been tried: only the records know how that ended
	closed  bool
}

// Begin returns the effect of a key: done, with its result, or else owned by
// the caller, who runs it, calls [Effect.Finish] and, in any case,
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
// While another owns the effect, Begin waits as [holdfast.Locker.Lock] does:
// until ctx ends, or for as long as [holdfast.Wait] among opts says, and then
// returns an error that matches [holdfast.ErrHeld]. An owner that has died is
// followed after the TTL of its lock by one of those who ask. Records that do not
// answer within ten seconds are an error.
//
// The key has 1 to 507 bytes of UTF-8, less the Locker's own prefix. It is locked
// as "once/" + key. Options are those of Lock; [holdfast.Shared],
// [holdfast.Slots] and [holdfast.Reenter] are refused, because with them an
// effect could have two owners. A lock store without fencing tokens is refused
// with [holdfast.ErrNotFenced], a bad key with [holdfast.ErrKey], and other bad
// input with [holdfast.ErrInvalid].
func Begin(ctx context.Context, locks *holdfast.Locker, records Records, key string, opts Options, lockOpts ...holdfast.LockOption) (*Effect, error) {
	e := &Effect{key: key, records: records, retention: opts.Retention}
	if e.retention == 0 {
		e.retention = usual
	}
	if err := e.check(opts); err != nil {
		return nil, e.failed("begin", err)
	}
	before, err := e.load(ctx) // whoever repeats what is done needs no lock
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
		return nil, e.failed("begin", errors.Join(err, lock.Unlock()))
	}
	return e, nil
}

func (e *Effect) load(ctx context.Context) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return e.records.Load(ctx, e.key)
}

// begin asks the records whether the holder of the lock owns the effect.
func (e *Effect) begin(ctx context.Context, lock *holdfast.Lock, fingerprint string) error {
	e.token = lock.Fence()
	if e.token == 0 {
		return lock.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := e.records.Begin(ctx, e.key, e.token, fingerprint, max(e.retention, unfinished))
	switch {
	case err != nil:
		return err
	case r.Fingerprint != fingerprint:
		return ErrMismatch
	case r.State == Done:
		e.result = r.Result
		_ = lock.Unlock() // The result is known, whatever becomes of the lock.
		return nil
	}
	e.lock = lock
	return nil
}

func (e *Effect) check(opts Options) error {
	if err := driver.CheckKey(e.key); err != nil {
		return &inputError{holdfast.ErrKey, err}
	}
	var words error
	switch {
	case len(e.key) > MaxKey:
		return &inputError{holdfast.ErrKey, fmt.Errorf("the key has %d bytes; it must have at most %d", len(e.key), MaxKey)}
	case len(opts.Fingerprint) > MaxFingerprint:
		words = fmt.Errorf("the fingerprint has %d bytes; it must have at most %d, such as a hash", len(opts.Fingerprint), MaxFingerprint)
	case e.retention < time.Millisecond || e.retention > MaxRetention:
		words = fmt.Errorf("the retention is %v; it must be from 1ms to %v", e.retention, MaxRetention)
	default:
		return nil
	}
	return &inputError{holdfast.ErrInvalid, words}
}

// alone adds to the options what an effect needs.
func alone(opts []holdfast.LockOption) []holdfast.LockOption {
	return append([]holdfast.LockOption{holdfast.Exclusive(), holdfast.Fenced()}, opts...)
}

// Result returns the result of an effect that was done before, and whether it
// was.
func (e *Effect) Result() (result []byte, done bool) {
	return bytes.Clone(e.result), e.lock == nil
}

// Context returns a copy of parent that carries the lock and ends when it is
// lost (see [holdfast.Lock.Context]); parent itself if the effect was done
// before.
func (e *Effect) Context(parent context.Context) context.Context {
	if e.lock == nil {
		return parent
	}
	return e.lock.Context(parent)
}

// Token returns the fencing token of the owner, larger than that of every earlier
// owner of the key; 0 if the effect was done before. Unlike
// [holdfast.Lock.Fence] it is there after a loss too.
func (e *Effect) Token() uint64 { return e.token }

// Finish remembers the result, of at most 1 MiB, for whoever asks for the key
// from now on. The end of ctx does not matter, since the effect has run: Finish
// tries for up to some ten seconds, again while the outcome is unknown.
//
// A lock that is lost does not matter either, unless another has begun since:
// then that one's result will count, and the error matches [fence.ErrOutdated]
// and [holdfast.ErrLost]. All errors but that of an effect which is not owned
// match [ErrUnrecorded]. After [ErrTooLarge] a smaller result may be tried.
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

// settle begins to finish. Call it with mu held.
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

// unrecorded says what became of an effect that has run.
func (e *Effect) unrecorded(err error) error {
	err = fmt.Errorf("%w: %w", ErrUnrecorded, err)
	if lost := e.lock.Err(); lost != nil {
		return errors.Join(err, lost)
	}
	return err
}

// persist calls again what fails without a certain answer, until ctx ends.
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
			return err
		}
		pause = min(2*pause, time.Second)
	}
}

// Close gives the key back. Unless Finish was called, nothing is remembered, and
// the next who asks may run the effect. Close takes no context: a cancelled request
// still gives its key back. It takes a few seconds at most.
//
// It returns an error that matches [holdfast.ErrLost] if the lock was lost before
// and Finish was not called: then the effect may not have been alone. A second
// Close does nothing.
func (e *Effect) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lock == nil || e.closed {
		return nil
	}
	e.closed = true
	if e.settled {
		_ = e.lock.Unlock() // Finish has said what there is to say.
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	err := e.failed("close", e.records.Forget(ctx, e.key, e.token))
	return errors.Join(err, e.lock.Unlock())
}

func (e *Effect) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("once: %s %q: %w", op, e.key, err)
}
