package holdfast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

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
		return nil, err // before the store is opened
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
	lk, err := New(store, opts)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
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
