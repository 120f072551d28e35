package once

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A Runner runs effects once per key. Locks and Records must be set. All processes that
// share keys need a Runner on the same lock store, with the same prefix, and on the same
// records.
type Runner struct {
	Locks   *holdfast.Locker
	Records Records

	// Retention is how long a result is remembered, from 1ms to ten years. Default 24h. A
	// begun effect is remembered for the same time, but for at least 24h, and must finish
	// in that time.
	Retention time.Duration
}

// Do runs fn once for a key and returns the result of fn. Within the retention, a
// repeated call returns the same result. opts are the lock options of [Runner.Begin].
//
// The context of fn carries the lock, and ends when the lock is lost. If fn returns an
// error or panics, nothing is remembered, and the next caller may try. Do returns the
// error of fn. If the result could not be remembered, Do returns the result and an
// error that matches [ErrUnrecorded].
func (r Runner) Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error), opts ...holdfast.LockOption) (result []byte, err error) {
	e, err := r.Begin(ctx, key, "", opts...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if result, done := e.Result(); done {
		return result, nil
	}
	result, err = fn(e.Context(ctx))
	if err != nil {
		return nil, err
	}
	return result, e.Finish(ctx, result)
}

// Begin returns the effect of a key: either done, with its result, or owned by the
// caller. The owner runs the effect, calls [Effect.Finish] and always calls
// [Effect.Close].
//
//	effect, err := effects.Begin(ctx, key, "")
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
// until ctx ends, or for the time of [holdfast.Wait] among opts. Begin then
// returns an error that matches [holdfast.ErrHeld]. If the owner dies, a waiting or later
// caller takes over after the TTL of the lock. If the records do not answer within ten
// seconds, Begin returns an error. If the records answer after the lock was lost, the
// error matches [holdfast.ErrLost], and the caller may try again.
//
// The fingerprint distinguishes uses of the same key, such as a hash of the request, in
// up to 256 bytes. A key begun with a different fingerprint is refused with
// [ErrMismatch].
//
// The key has 1 to 507 bytes of UTF-8, less the Locker's own prefix. Begin locks the
// key as "once/" + key. opts are the options of Lock. [holdfast.Shared],
// [holdfast.Slots] and [holdfast.Reenter] are refused, because an effect could then
// have two owners. A lock store without fencing tokens is refused with
// [holdfast.ErrNotFenced], a bad key with [holdfast.ErrInvalidKey], and other bad input with
// [holdfast.ErrInvalid].
func (r Runner) Begin(ctx context.Context, key, fingerprint string, opts ...holdfast.LockOption) (*Effect, error) {
	e, err := r.effect(key, fingerprint)
	if err != nil {
		return nil, e.failed("begin", err)
	}
	before, err := e.load(ctx) // a repeated call for a done effect needs no lock
	if err != nil {
		return nil, e.failed("begin", err)
	}
	if before.State != Free && before.Fingerprint != fingerprint {
		return nil, e.failed("begin", ErrMismatch)
	}
	if before.State == Done {
		e.result = before.Result
		return e, nil
	}
	lock, err := r.Locks.Lock(ctx, lockPrefix+key, alone(opts)...)
	if err != nil {
		return nil, err
	}
	if err := e.begin(ctx, lock, fingerprint); err != nil {
		unlocked := bounded.Within(ctx, lock.Unlock) // a silent store takes seconds
		if errors.Is(err, holdfast.ErrLost) {
			unlocked = nil // err already reports the loss
		}
		return nil, e.failed("begin", errors.Join(err, unlocked))
	}
	return e, nil
}

// effect returns the effect of a key before anything is known of it. The error says what is
// wrong with the arguments.
func (r Runner) effect(key, fingerprint string) (*Effect, error) {
	e := &Effect{key: key, records: r.Records, retention: cmp.Or(r.Retention, usual)}
	if r.Locks == nil || r.Records == nil {
		return e, &inputError{holdfast.ErrInvalid, errors.New("Runner.Locks and Runner.Records must be set")}
	}
	return e, e.check(fingerprint)
}

// Forget removes the result of a key, or the mark of a begun effect, so that the effect
// may run again. Forget waits until an owner at work has released the key. opts are the
// lock options of [Runner.Begin].
func (r Runner) Forget(ctx context.Context, key string, opts ...holdfast.LockOption) error {
	e, err := r.effect(key, "")
	if err != nil {
		return e.failed("forget", err)
	}
	caller := ctx
	return r.Locks.Do(ctx, lockPrefix+key, func(ctx context.Context) error {
		lock, _ := holdfast.FromContext(ctx)
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return e.failed("forget", silence.For(caller, r.Records.Forget(ctx, key, lock.Fence()), patience))
	}, alone(opts)...)
}

// alone adds the required lock options of an effect to opts.
func alone(opts []holdfast.LockOption) []holdfast.LockOption {
	return append([]holdfast.LockOption{holdfast.Exclusive(), holdfast.Fenced()}, opts...)
}
