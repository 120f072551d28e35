package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// A successful run with --once-per leaves a mark: a lock on a separate key, without a holder,
// that expires. The mark is set and read under the lock on KEY, so two
// runs can never both find the mark missing. Keys with the prefix ownKeys are refused for
// runs: the holder of such a key would look like a finished run.
const (
	ownKeys    = "holdfast/"
	markPrefix = ownKeys + "ran/"
)

func (j *job) marker() string { return markPrefix + j.key }

// ranBefore reports whether the mark exists.
func (j *job) ranBefore(ctx context.Context, locks *holdfast.Locker) (bool, error) {
	mark, err := locks.TryLock(ctx, j.marker())
	held := (*holdfast.HeldError)(nil)
	switch {
	case err == nil:
		return false, cli.StoreFailure(mark.Unlock())
	case !errors.As(err, &held):
		return false, cli.StoreFailure(err)
	}
	if !j.quiet {
		next := ""
		if held.Left > 0 {
			next = fmt.Sprintf("; the next run is due in %s", cli.Short(held.Left.Round(time.Second)))
		}
		cli.Say(j.stderr, "skipped %q, because it has run within %s (%s)%s", j.key, cli.Short(j.oncePer), held.Owner, next)
	}
	return true, nil
}

// mark records that the run has succeeded. The run acquired its lock at began.
func (j *job) mark(locks *holdfast.Locker, began time.Time) {
	rest := j.oncePer - time.Since(began)
	if rest <= 0 {
		return
	}
	mark, err := locks.TryLock(context.Background(), j.marker(), holdfast.MinHold(rest), holdfast.Note("ran"))
	if err == nil {
		err = mark.Unlock()
	}
	if err != nil {
		cli.Say(j.stderr, "could not note that %q has run, so it may run again within %s: %v", j.key, cli.Short(j.oncePer), cli.Bare(err))
	}
}
