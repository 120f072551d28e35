package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

// A job is one run of a command under a lock: the flags of run, then what they
// apply to.
type job struct {
	try, shared, quiet bool
	wait, ttl, grace   time.Duration
	maxHold, atLeast   time.Duration
	oncePer            time.Duration
	slots, weight      int
	conflict           int
	note               string

	store  *site
	flags  *cobra.Command
	stderr io.Writer
	key    string
	argv   []string
	path   string // of the program, as found before the lock is taken
	events events
	onExit func() // nil if nothing is left to do at the very end
}

func (j *job) runToEnd() error {
	err := j.run()
	if j.onExit != nil {
		j.onExit()
	}
	return err
}

// run takes the lock and runs the command under it.
func (j *job) run() (err error) {
	if j.path, err = lookPath(j.argv[0]); err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	listen(signals, ending)
	j.store.quiet = j.quiet
	locks, err := j.store.open(context.Background(), &holdfast.Options{Trace: j.events.trace()})
	if err != nil {
		return err
	}
	defer func() {
		if e := locks.Close(); e != nil && err == nil {
			say(j.stderr, "%v", e)
		}
	}()
	lock, err := j.lock(locks, signals)
	if err != nil {
		return err
	}
	if j.oncePer > 0 {
		if skip, err := j.ranBefore(locks); skip || err != nil {
			return j.free(lock, err)
		}
	}
	return j.hold(locks, lock, signals)
}

// lock waits for the lock, until a signal comes.
func (j *job) lock(locks *holdfast.Locker, signals <-chan os.Signal) (*holdfast.Lock, error) {
	ctx, cancel := context.WithCancel(context.Background())
	caught := make(chan os.Signal, 1)
	go func() {
		defer close(caught)
		select {
		case s := <-signals:
			caught <- s
			cancel()
		case <-ctx.Done():
		}
	}()
	lock, err := locks.Lock(ctx, j.key, j.options()...)
	cancel()
	if s, ok := <-caught; ok {
		if lock != nil {
			lock.Unlock()
		}
		return nil, failure(exitSignal+signalNumber(s), nil)
	}
	held := (*holdfast.HeldError)(nil)
	switch {
	case err == nil:
		return lock, nil
	case errors.As(err, &held):
		return nil, j.refused(held)
	case errors.Is(err, holdfast.ErrLost):
		return nil, failure(exitLost, fmt.Errorf("the wait for %q was ended: %w", j.key, bare(err)))
	}
	return nil, storeFailure(err)
}

// refused is the exit if another holds the lock.
func (j *job) refused(held *holdfast.HeldError) error {
	switch {
	case j.quiet:
		return failure(j.conflict, nil)
	case j.try:
		return failure(j.conflict, fmt.Errorf("%q is %w", j.key, held))
	}
	return failure(j.conflict, fmt.Errorf("%q is %w; gave up after --wait %s", j.key, held, short(j.wait)))
}

// hold runs the command while the lock is held, then gives it back.
func (j *job) hold(locks *holdfast.Locker, lock *holdfast.Lock, signals chan os.Signal) error {
	began := time.Now()
	g := guard{lock: lock, events: &j.events, signals: signals, grace: j.grace, stderr: j.stderr}
	if err := g.ready(); err != nil {
		return j.free(lock, nil)
	}
	// Linux kills the child when the thread that has started it ends.
	runtime.LockOSThread()
	var err error
	g.child, err = start(j.path, j.argv, j.environ(lock), signals)
	if err != nil {
		return j.free(lock, notStarted(j.argv[0], err))
	}
	status := g.wait()
	j.onExit = g.child.onExit
	if g.lost != nil {
		lock.Unlock()
		return failure(exitLost, nil) // the guard has told
	}
	if j.oncePer > 0 && status == 0 {
		j.mark(locks, began)
	}
	if err := j.free(lock, nil); err != nil || status == 0 {
		return err
	}
	return failure(status, nil)
}

// environ is the environment of the command. The store's URL is no part of it
// unless it was in ours: it may hold a password.
func (j *job) environ(lock *holdfast.Lock) []string {
	// Of two values, some programs take the first and some the last.
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains([]string{"HOLDFAST_KEY", "HOLDFAST_FENCE", "HOLDFAST_OWNER"}, name)
	})
	return append(env,
		"HOLDFAST_KEY="+j.key,
		"HOLDFAST_FENCE="+strconv.FormatUint(lock.Fence(), 10),
		"HOLDFAST_OWNER="+j.events.owner)
}

// free unlocks and returns err, or else what the end of the lock tells about
// the time before it.
func (j *job) free(lock *holdfast.Lock, err error) error {
	switch e := lock.Unlock(); {
	case err != nil || e == nil:
		return err
	case errors.Is(e, holdfast.ErrLost):
		return failure(exitLost, fmt.Errorf("%q is not ours any more: %w", j.key, bare(e)))
	default:
		say(j.stderr, "%q could not be unlocked and ends with its TTL: %v", j.key, bare(e))
		return nil
	}
}
