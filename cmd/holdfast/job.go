package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// A job is a run of a command under a lock: the flags of run, followed by the key and the
// command.
type job struct {
	try, shared, quiet bool
	wait, ttl, grace   time.Duration
	maxHold, atLeast   time.Duration
	oncePer            time.Duration
	slots, weight      int
	conflict           int
	note               string
	signal             string // at a loss, a name in lossSignals

	store  *site
	flags  *cobra.Command
	stderr *voice
	key    string
	argv   []string
	path   string // of the program, as found before the lock is taken
	events events
}

func (j *job) runToEnd() error {
	j.stderr = newVoice(j.flags.ErrOrStderr())
	j.flags.Root().SetErr(j.stderr)
	signals := make(chan os.Signal, 16)
	cli.Listen(signals, cli.Ending)
	err := j.run(signals)
	// A signal that arrived after the command's end is meant for this process.
	signal.Stop(signals)
	close(signals)
	for s := range signals {
		if slices.Contains(cli.Ending, s) {
			return cli.EndedBy(s)
		}
	}
	return err
}

// run acquires the lock and runs the command under the lock.
func (j *job) run(signals chan os.Signal) (err error) {
	if j.path, err = lookPath(j.argv[0]); err != nil {
		return err
	}
	ctx, caught := attend(signals)
	j.store.quiet = j.quiet
	locks, err := j.store.open(ctx, j.events.trace())
	if err != nil {
		return cmp.Or(caught(), err)
	}
	defer func() {
		if e := locks.Close(); e != nil && err == nil {
			cli.Say(j.stderr, "%v", e)
		}
	}()
	lock, err := j.lock(ctx, locks)
	if err != nil {
		return cmp.Or(caught(), err)
	}
	skip := false
	if j.oncePer > 0 {
		skip, err = j.ranBefore(ctx, locks)
	}
	if err = cmp.Or(caught(), err); skip || err != nil {
		return j.free(lock, err)
	}
	return j.hold(locks, lock, signals)
}

// attend returns a context that ends with a signal. The function returns the exit for the
// signal, nil without a signal, and leaves all later signals alone.
func attend(signals <-chan os.Signal) (ctx context.Context, caught func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		defer cancel()
		select {
		case s := <-signals:
			done <- cli.EndedBy(s)
		case <-ctx.Done():
			done <- nil
		}
	}()
	return ctx, func() error {
		cancel()
		return <-done
	}
}

// lock waits for the lock.
func (j *job) lock(ctx context.Context, locks *holdfast.Locker) (*holdfast.Lock, error) {
	stop := j.watch(ctx, locks)
	lock, err := locks.Lock(ctx, j.key, j.options()...)
	stop()
	held := (*holdfast.HeldError)(nil)
	switch {
	case err == nil:
		return lock, nil
	case errors.As(err, &held):
		return nil, j.refused(held)
	case errors.Is(err, holdfast.ErrLost):
		return nil, cli.Failure(cli.ExitLost, fmt.Errorf("the wait for %q was ended: %w", j.key, cli.Bare(err)))
	}
	return nil, cli.StoreFailure(err)
}

// refused returns the exit if the lock is held.
func (j *job) refused(held *holdfast.HeldError) error {
	switch {
	case j.quiet:
		return cli.Failure(j.conflict, nil)
	case j.try:
		return cli.Failure(j.conflict, fmt.Errorf("%q is %w", j.key, held))
	}
	return cli.Failure(j.conflict, fmt.Errorf("%q is %w; gave up after --wait %s", j.key, held, cli.Short(j.wait)))
}

// hold runs the command while the lock is held, then releases the lock.
func (j *job) hold(locks *holdfast.Locker, lock *holdfast.Lock, signals chan os.Signal) error {
	j.stderr.flush() // A line written later would come between the lines of the command.
	began := time.Now()
	g := guard{lock: lock, events: &j.events, signals: signals, grace: j.grace, loss: lossSignals[j.signal], stderr: j.stderr}
	if err := g.ready(); err != nil {
		return j.free(lock, nil)
	}
	// Linux kills the child when the thread that started the child ends.
	runtime.LockOSThread()
	var err error
	g.child, err = start(j.path, j.argv, j.environ(lock), signals)
	if err != nil {
		return j.free(lock, notStarted(j.argv[0], err))
	}
	status := g.wait()
	interrupted := g.interrupted()
	if g.lost != nil {
		lock.Unlock()
		return cmp.Or(interrupted, cli.Failure(cli.ExitLost, nil)) // the guard has printed the reason
	}
	if j.oncePer > 0 && status == 0 {
		j.mark(locks, began)
	}
	if err := j.free(lock, interrupted); err != nil || status == 0 {
		return err
	}
	return cli.Failure(status, nil)
}

// environ returns the environment of the command. The store's URL is not added, since the
// URL may hold a password; a URL in the environment of this process is inherited.
func (j *job) environ(lock *holdfast.Lock) []string {
	// If a variable is set twice, some programs take the first value and some the last.
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains([]string{"HOLDFAST_KEY", "HOLDFAST_FENCE", "HOLDFAST_OWNER"}, name)
	})
	return append(env,
		"HOLDFAST_KEY="+j.key,
		"HOLDFAST_FENCE="+strconv.FormatUint(lock.Fence(), 10),
		"HOLDFAST_OWNER="+j.events.owner)
}

// free unlocks and returns err. If err is nil, free returns an exit if the Unlock reports
// that the lock was lost before.
func (j *job) free(lock *holdfast.Lock, err error) error {
	switch e := lock.Unlock(); {
	case err != nil || e == nil:
		return err
	case errors.Is(e, holdfast.ErrLost):
		return cli.Failure(cli.ExitLost, fmt.Errorf("%q is not ours any more: %w", j.key, cli.Bare(e)))
	default:
		cli.Say(j.stderr, "%q could not be unlocked and ends with its TTL: %v", j.key, cli.Bare(e))
		return nil
	}
}
