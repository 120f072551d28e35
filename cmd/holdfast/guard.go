package main

import (
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// A guard watches a command and the lock of the command until both have ended. Everything
// happens in a single goroutine, so no signal can go to a process that has been waited for
// and whose number may have been reused.
//
// For the command, the lock counts as lost a grace before the deadline. A renewal could
// still succeed then, but too late to stop the command in time.
type guard struct {
	lock    *holdfast.Lock
	events  *events
	child   *child
	signals <-chan os.Signal
	grace   time.Duration
	loss    os.Signal // tells the command to end at a loss
	stderr  io.Writer

	asked  os.Signal // the last signal that asked this process to end
	told   os.Signal // the signal sent to the command for asked
	late   os.Signal // the same, if the command had ended before
	often  int       // how often INT or TERM arrived
	lost   error     // why the lock is lost; nil while the lock is held
	killAt time.Time // set with lost
	killed bool
}

// glance is the longest time between two checks of the lock. Timers stand still while a
// machine sleeps, but the clock of the lock does not.
const glance = time.Second

// ready waits until the lock is good for longer than the grace, even at the time of the
// next renewal. A lock granted after a wait in the queue is short until its first renewal.
// If a store grants less than the TTL, less is left for the grace. If the lock is lost,
// ready returns an error.
func (g *guard) ready() error {
	for renewed := false; ; renewed = true {
		if err := g.lock.Err(); err != nil {
			return err
		}
		deadline, ends := g.lock.Deadline()
		lasts := time.Until(deadline)
		switch {
		case !ends || lasts*2/3 > g.grace:
			return nil
		case renewed:
			cli.Say(g.stderr, "the store grants %q for less than its TTL: the command gets %s between TERM and KILL, not %s",
				g.lock.Key(), cli.Short((lasts / 3).Truncate(time.Millisecond)), cli.Short(g.grace))
			g.grace = lasts / 3
			return nil
		}
		select {
		case <-g.events.renewed:
		case <-g.lock.Done():
		}
	}
}

// wait returns the exit code of the command once the command has ended. If the lock is
// lost, the whole process group of the command has ended by then.
func (g *guard) wait() (status int) {
	done := g.lock.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var sig os.Signal
		select {
		case <-g.child.news:
		case sig = <-g.signals:
		case <-done:
			done = nil
		case <-timer.C:
		}
		var ended bool
		if status, ended = g.child.look(); !ended {
			if sig != nil {
				g.pass(sig)
			}
			timer.Reset(g.check())
			continue
		}
		if slices.Contains(cli.Ending, sig) {
			g.late = sig
		}
		if g.lost == nil {
			g.lost = g.lock.Err()
		}
		if g.lost != nil {
			g.clear()
		}
		g.child.close()
		return status
	}
}

// check resumes, ends or kills the command as the lock and the time require, and returns
// the time until the next check.
func (g *guard) check() time.Duration {
	if g.lost == nil {
		left, err := g.left()
		if err == nil && left > 0 {
			g.child.resume()
			return min(left, glance)
		}
		g.end(err)
	}
	left := time.Until(g.killAt)
	if left <= 0 && !g.killed {
		g.kill()
	}
	if g.killed {
		return glance
	}
	return left
}

// left returns the time until the command must be told to end. An error means that the lock
// is lost already.
func (g *guard) left() (time.Duration, error) {
	if err := g.lock.Err(); err != nil {
		return 0, err
	}
	deadline, ok := g.lock.Deadline()
	if !ok {
		return glance, nil
	}
	return time.Until(deadline) - g.grace, nil
}

// end tells the command to end, because the lock is lost or nearly lost.
func (g *guard) end(why error) {
	if why == nil {
		why = &holdfast.LostError{Reason: holdfast.LossUnreachable, Err: g.events.trouble()}
	}
	g.lost = why
	g.killAt = time.Now().Add(g.grace)
	// Kill a little before the deadline: a process takes a moment to die.
	spare := min(g.grace/4, 100*time.Millisecond)
	if deadline, ok := g.lock.Deadline(); ok && deadline.Add(-spare).Before(g.killAt) {
		g.killAt = deadline.Add(-spare)
	}
	g.signal(g.loss)
	g.child.wake()
	cli.Say(g.stderr, "%q is not ours any more, so the command has to end: %v", g.lock.Key(), cli.Bare(why))
}

func (g *guard) kill() {
	g.killed = true
	g.signal(syscall.SIGKILL)
}

// pass forwards a signal to the command. A signal to end becomes TERM the second time, and
// KILL the third time, since a user who repeats the signal insists.
func (g *guard) pass(sig os.Signal) {
	ends := slices.Contains(cli.Ending, sig)
	if ends {
		g.asked = sig
	}
	if sig == syscall.SIGINT || sig == syscall.SIGTERM {
		g.often++
		switch {
		case g.often == 2:
			sig = syscall.SIGTERM
		case g.often > 2:
			sig = syscall.SIGKILL
		}
	}
	if ends {
		g.told = sig
	}
	g.signal(sig)
}

// interrupted returns the exit of this process if the command was ended by a signal that
// was also meant for this process, else nil. If ^C is typed while the command has the
// terminal, the group of this process does not see the ^C, so the exit sends the signal
// to that whole group.
func (g *guard) interrupted() error {
	switch by := g.child.by; {
	case g.late != nil:
		return cli.EndedBy(g.late)
	case by == nil:
	case by == g.told:
		return cli.EndedBy(g.asked)
	case by == syscall.SIGINT && g.child.lent:
		e := cli.EndedBy(by)
		e.Group = true
		return e
	}
	return nil
}

func (g *guard) signal(sig os.Signal) {
	if err := g.child.signal(sig); err != nil {
		cli.Say(g.stderr, "cannot send the command the signal %q: %v", sig, err)
	}
}

// clear ends the processes that the command has left in its group: at once after KILL, else
// when their time is up.
func (g *guard) clear() {
	const step = 5 * time.Millisecond
	if g.killAt.IsZero() { // lost at the moment when the command ended
		g.end(g.lost)
	}
	for !g.child.gone() {
		if !g.killed && time.Now().After(g.killAt) {
			g.kill()
		}
		if g.killed && time.Since(g.killAt) > glance {
			return // only zombies are left, which nobody waits for
		}
		time.Sleep(step)
	}
}
