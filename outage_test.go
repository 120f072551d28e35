package holdfast

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// silent reports whether an error says that the store has not answered, and not that
// a context has ended.
func silent(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// An acquirer is what a faulty store does with an Acquire.
type acquirer = func(context.Context, driver.Ask, func() (driver.Grant, error)) (driver.Grant, error)

// refusing refuses, speechless never answers, and retrying tries to reach its server until the
// call ends.
func refusing(context.Context, driver.Ask, func() (driver.Grant, error)) (driver.Grant, error) {
	return driver.Grant{}, errDown
}

func speechless(ctx context.Context, _ driver.Ask, _ func() (driver.Grant, error)) (driver.Grant, error) {
	return driver.Grant{}, hang(ctx)
}

func retrying(ctx context.Context, _ driver.Ask, _ func() (driver.Grant, error)) (driver.Grant, error) {
	return driver.Grant{}, errors.Join(hang(ctx), errDown)
}

// An error matches that of a context only if the caller's has ended, and tells of the
// store's last failure all the same.
func TestOutageInErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		store acquirer
		cause bool // the store says what is wrong
	}{
		{"refused", refusing, true},
		{"silent", speechless, false},
		{"retried", retrying, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			simulate(t, func(b *bench) {
				lk := b.open(nil)
				b.store.set(func(f *faulty) { f.acquire = test.store })
				defer b.store.set(func(f *faulty) { f.acquire = nil })
				check := func(what string, err, ended error) {
					b.Helper()
					if errors.Is(err, errDown) != test.cause {
						b.Errorf("%s: %v; want the error of the store in it: %v", what, err, test.cause)
					}
					for _, of := range []error{context.Canceled, context.DeadlineExceeded} {
						if errors.Is(err, of) != (of == ended) {
							b.Errorf("%s: %v; want the error of the context in it: %v", what, err, ended)
						}
					}
					if errors.Is(err, ErrHeld) {
						b.Errorf("%s: %v, and nobody has the key", what, err)
					}
				}
				try := func(ctx context.Context, opts ...LockOption) error {
					_, err := lk.Lock(ctx, "k", opts...)
					return err
				}

				_, err := lk.TryLock(b.Context(), "k")
				check("TryLock", err, nil)
				check("Lock", try(b.Context()), nil)
				check("Lock with Wait", try(b.Context(), Wait(1500*time.Millisecond)), nil)
				check("Lock with Wait that ends during a call", try(b.Context(), Wait(time.Second+time.Millisecond)), nil)

				ctx, cancel := context.WithTimeout(b.Context(), 1500*time.Millisecond)
				defer cancel()
				check("Lock past its deadline", try(ctx), context.DeadlineExceeded)

				ctx, cancel = context.WithCancel(b.Context())
				behind := make(chan error, 2)
				go func() { behind <- try(ctx) }()
				synctest.Wait()
				go func() { behind <- try(ctx) }()
				time.Sleep(1500 * time.Millisecond)
				cancel()
				check("the first of two that are cancelled", <-behind, context.Canceled)
				check("the second", <-behind, context.Canceled)
			})
		})
	}
}

// A caller whose context ends during the first call learns only that.
func TestCutOffAtOnce(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		b.store.set(func(f *faulty) { f.acquire = speechless })
		ctx, cancel := context.WithTimeout(b.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := lk.Lock(ctx, "k")
		if took := time.Since(began); took != 100*time.Millisecond || err.Error() != `holdfast: lock "k": context deadline exceeded` {
			b.Errorf("%v after %v", err, took)
		}
		b.store.set(func(f *faulty) { f.acquire = nil })
	})
}

// A caller who was refused before the store failed learns of both: the contender, and a call that
// waits behind the contender.
func TestOutageWhileHeld(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(&Options{Poll: 100 * time.Millisecond}), b.open(&Options{Owner: "other"})
		held := b.lock(other, "k")
		lock := func(limit time.Duration, wait bool) error {
			if wait {
				return errOf(lk.Lock(b.Context(), "k", Wait(limit)))
			}
			ctx, cancel := context.WithTimeout(b.Context(), limit)
			defer cancel()
			return errOf(lk.Lock(ctx, "k"))
		}
		for _, wait := range []bool{false, true} {
			ended := make(chan error)
			for _, limit := range []time.Duration{6 * time.Second, 5 * time.Second} {
				go func() { ended <- lock(limit, wait) }()
				synctest.Wait()
			}
			time.Sleep(time.Second)
			b.store.set(func(f *faulty) { f.acquire = refusing })
			for range 2 {
				err := <-ended
				if !errors.Is(err, ErrHeld) || !errors.Is(err, errDown) || errors.Is(err, context.DeadlineExceeded) == wait || !strings.Contains(err.Error(), `"other"`) {
					b.Errorf("%v; want the holder, the error of the store, and that of the context only if it has ended", err)
				}
			}
			b.store.set(func(f *faulty) { f.acquire = nil })
		}
		b.unlock(held)
	})
}

// The loss of a lock because its store was silent is no end of a caller's context.
func TestSilenceIsNoEndOfAContext(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k")
		ctx := l.Context(b.Context())
		b.store.set(func(f *faulty) { f.renew = hangs })
		<-ctx.Done()
		for what, err := range map[string]error{"Err": l.Err(), "the cause of the context": context.Cause(ctx), "Unlock": l.Unlock()} {
			if !errors.Is(err, ErrLost) || !silent(err) {
				b.Errorf("%s: %v", what, err)
			}
		}
		b.store.set(func(f *faulty) { f.renew = nil })
	})
}

// A store that does not answer a Watch holds up neither the end of Wait nor Close.
func TestUnansweredWatchHoldsUpNobody(t *testing.T) {
	simulate(t, func(b *bench) {
		b.store.set(func(f *faulty) { f.watch = hang })
		first, second := b.open(&Options{TTL: 3 * time.Second}), b.open(&Options{TTL: 3 * time.Second})
		held := b.lock(first, "key")
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := second.Lock(ctx, "key", Wait(2*time.Second)); !errors.Is(err, ErrHeld) || time.Since(began) != 2*time.Second {
			b.Errorf("after %v: %v, want ErrHeld after 2s", since(began), err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := second.Lock(ctx, "key")
			done <- err
		}()
		time.Sleep(100 * time.Millisecond)
		began = time.Now()
		if err := second.Close(); err != nil || time.Since(began) > time.Second {
			b.Errorf("Close took %v: %v", since(began), err)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			b.Errorf("Lock: %v, want ErrClosed", err)
		}
		b.unlock(held)
	})
}
