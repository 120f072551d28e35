package main

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A guard stands between a command and the lock that it runs under, until both
// have ended. All happens in one goroutine: a signal can never go to a process
// that has been waited for, whose number may be another's by then.
//
// The lock is lost, for the command, a grace before its deadline, when a
// renewal would still help but could come too late to stop the command in time.
type guard struct {
	lock    *holdfast.Lock
	events  *events
	child   *child
	signals <-chan os.Signal
	grace   time.Duration
	stderr  io.Writer

	asked  int       // how often we were asked to end
	lost   error     // why the lock is lost; nil while it is not
	killAt time.Time // set with lost
	killed bool
}

// glance is the longest time between two looks at the lock. Timers stand still
// while a machine sleeps, but the lock's own clock does not.
const glance = time.Second

// ready waits until the lock is good for longer than the grace, also when its next
// renewal is due: one that came to us while we stood in line is short until its
// first. A store that grants less than the TTL leaves less for the grace. It
// returns an error if the lock is lost instead.
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
			say(g.stderr, "the store grants %q for less than its TTL: the command gets %s between TERM and KILL, not %s",
				g.lock.Key(), short((lasts / 3).Truncate(time.Millisecond)), short(g.grace))
			g.grace = lasts / 3
			return nil
		}
		select {
		case <-g.events.renewed:
		case <-g.lock.Done():
		}
	}
}

// wait returns the exit code of the command once it has ended. If the lock is
// lost, all of the command's process group has ended by then.
func (g *guard) wait() (status int) {
	done := g.lock.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-g.child.news:
		case sig := <-g.signals:
			g.pass(sig)
		case <-done:
			done = nil
		case <-timer.C:
		}
		var ended bool
		if status, ended = g.child.look(); !ended {
			timer.Reset(g.check())
			continue
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

// check does what the time and the lock ask for, and returns when to check
// again.
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

// left is the time until the command has to be told to end. The error says
// that the lock is lost already.
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

// end tells the command to end, because the lock is lost or nearly so.
func (g *guard) end(why error) {
	if why == nil {
		why = &holdfast.LostError{Reason: holdfast.LossUnreachable, Err: g.events.trouble()}
	}
	g.lost = why
	say(g.stderr, "%q is not ours any more, so the command has to end: %v", g.lock.Key(), bare(why))
	g.killAt = time.Now().Add(g.grace)
	// A little before the deadline: a process takes a moment to die.
	spare := min(g.grace/4, 100*time.Millisecond)
	if deadline, ok := g.lock.Deadline(); ok && deadline.Add(-spare).Before(g.killAt) {
		g.killAt = deadline.Add(-spare)
	}
	g.signal(syscall.SIGTERM)
	g.child.wake()
}

func (g *guard) kill() {
	g.killed = true
	g.signal(syscall.SIGKILL)
}

// pass forwards a signal to the command. One that asks to end becomes TERM the
// second time, and KILL the third: whoever sends it again means it.
func (g *guard) pass(sig os.Signal) {
	if sig == syscall.SIGINT || sig == syscall.SIGTERM {
		g.asked++
		switch {
		case g.asked == 2:
			sig = syscall.SIGTERM
		case g.asked > 2:
			sig = syscall.SIGKILL
		}
	}
	g.signal(sig)
}

func (g *guard) signal(sig os.Signal) {
	if err := g.child.signal(sig); err != nil {
		say(g.stderr, "cannot send the command the signal %q: %v", sig, err)
	}
}

// clear ends what the command has left behind in its group: at once after
// KILL, else when its time is up.
func (g *guard) clear() {
	const step = 5 * time.Millisecond
	if g.killAt.IsZero() { // lost in the moment when the command ended
		g.end(g.lost)
	}
	for !g.child.gone() {
		if !g.killed && time.Now().After(g.killAt) {
			g.kill()
		}
		if g.killed && time.Since(g.killAt) > glance {
			return // zombies that nobody waits for
		}
		time.Sleep(step)
	}
}
