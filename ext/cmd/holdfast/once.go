package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A run with --once-per that has succeeded leaves a mark: a lock on a key of
// its own, which nobody holds and which runs out. It is set and read under the
// lock on KEY, so that no two runs can both find it missing.
const markSuffix = " (ran)"

func (j *job) marker() string { return j.key + markSuffix }

// ranBefore reports whether the mark stands.
func (j *job) ranBefore(locks *holdfast.Locker) (bool, error) {
	mark, err := locks.TryLock(context.Background(), j.marker())
	held := (*holdfast.HeldError)(nil)
	switch {
	case err == nil:
		return false, storeFailure(mark.Unlock())
	case !errors.As(err, &held):
		return false, storeFailure(err)
	}
	if !j.quiet {
		next := ""
		if held.Retry > 0 {
			next = fmt.Sprintf("; the next run is due in %s", short(held.Retry.Round(time.Second)))
		}
		say(j.stderr, "skipped %q, because it has run within %s (%s)%s", j.key, short(j.oncePer), held.Owner, next)
	}
	return true, nil
}

// mark notes that the run which began when lock was taken has succeeded.
func (j *job) mark(locks *holdfast.Locker, began time.Time) {
	rest := j.oncePer - time.Since(began)
	if rest <= 0 {
		return
	}
	mark, err := locks.TryLock(context.Background(), j.marker(), holdfast.AtLeast(rest), holdfast.Note("ran"))
	if err == nil {
		err = mark.Unlock()
	}
	if err != nil {
		say(j.stderr, "could not note that %q has run, so it may run again within %s: %v", j.key, short(j.oncePer), bare(err))
	}
}
