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
// that expires. The mark is set and read under the lock on KEY, so two runs can never both find
// the mark missing. A note tells the mark from the lock of a run that only looks for the mark.
// Keys with the prefix ownKeys are refused for runs: the holder of such a key would look like a
// finished run.
const (
	ownKeys    = "holdfast/"
	markPrefix = ownKeys + "ran/"
	ran        = "ran" // the note of a mark
)

// lookEnds is how long a run waits for the end of a claim that is no mark. The claim of a look
// ends with the default TTL of 15 s, and later if the store expires claims late.
const lookEnds = time.Minute

func (j *job) marker() string { return markPrefix + j.key }

// ranBefore reports whether the mark exists. If a look for the mark was left by a run that the
// store has not answered, ranBefore waits for the end of that look.
func (j *job) ranBefore(ctx context.Context, locks *holdfast.Locker) (bool, error) {
	look, err := locks.TryLock(ctx, j.marker())
	held := (*holdfast.HeldError)(nil)
	if errors.As(err, &held) && held.Note != ran {
		if !j.quiet {
			cli.Say(j.stderr, "waiting to learn whether %q has run: %q is %v", j.key, j.marker(), held)
		}
		look, err = locks.Lock(ctx, j.marker(), holdfast.Wait(lookEnds))
	}
	switch {
	case err == nil:
		return false, cli.StoreFailure(look.Unlock())
	case !errors.As(err, &held):
		return false, cli.StoreFailure(err)
	case held.Note != ran:
		return false, cli.Failure(cli.ExitUnreachable, fmt.Errorf("cannot tell whether %q has run: %q is %w", j.key, j.marker(), held))
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
	mark, err := locks.TryLock(context.Background(), j.marker(), holdfast.MinHold(rest), holdfast.Note(ran))
	if err == nil {
		err = mark.Unlock()
	}
	if err != nil {
		cli.Say(j.stderr, "could not note that %q has run, so it may run again within %s: %v", j.key, cli.Short(j.oncePer), cli.Bare(err))
	}
}
