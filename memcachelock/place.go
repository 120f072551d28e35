package memcachelock

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/backoff"
)

// Waiters mark the key with two items. The wait item says that somebody waits. The next item
// belongs to one waiter, the next. The next retries every few milliseconds, and the remaining
// waiters retry seldom. A waiter that finds no wait item is alone, and writes the next item at
// the second retry. A waiter that finds a wait item retries seldom at first, so that a newcomer
// does not pass the waiters of long ago.
//
// A waiter removes its marks in the request that acquires the key, or after the wait. If a
// newcomer acquires the key first, the next retries soon to write its marks again. The marks of
// a dead waiter expire.
const (
	// markTime is how many seconds a mark stands; up to one second less, but longer than a
	// waiter goes without a retry.
	markTime = 3

	// markAgain is how long the next goes without writing the marks.
	markAgain = time.Second

	// nextPause is the longest pause of the next, and of a waiter without marks. After a long
	// wait the pause of the next is a hundredth of the wait.
	nextPause = 7 * time.Millisecond

	// firstPause is the first pause of the remaining waiters. Later pauses are longer.
	firstPause = 50 * time.Millisecond
)

// A place is the marks of a waiting claim.
type place struct {
	rested bool      // the process had a turn before, and backed off
	soon   bool      // the claim retries soon: nobody else waited, or the next was outrun
	wait   uint64    // the CAS number of the wait item, as last written by the claim
	next   uint64    // the CAS number of the next item if the claim is the next, else 0
	since  time.Time // when the claim became the next
	wrote  time.Time // when the claim wrote the marks; zero before
}

// marks returns the commands that write the marks, if they are due.
func (p *place) marks(o *Options, item string) []string {
	const absent = "ME" // The item is written only if there is none.
	write := func(item, condition string) string {
		return fmt.Sprintf("ms %s 0 T%d c %s\r\n\r\n", item, markTime, condition)
	}
	switch {
	case p.wrote.IsZero():
		return []string{write(o.mark(item), absent)}
	case p.next == 0 && p.soon:
		return []string{write(o.mark(item), absent), write(o.next(item), absent)}
	case p.next == 0:
		return []string{write(o.mark(item), ""), write(o.next(item), absent)}
	case time.Since(p.wrote) < markAgain:
		return nil
	}
	return []string{write(o.mark(item), absent), write(o.next(item), fmt.Sprint("C", p.next))}
}

// note takes the replies to marks. A reply has no number if the item was not written.
func (p *place) note(rs []reply) {
	now := time.Now()
	if rs[0].cas != 0 {
		p.wait = rs[0].cas
	}
	if len(rs) == 1 {
		p.soon = rs[0].cas != 0
	} else {
		if p.next == 0 {
			p.since = now
		}
		p.next, p.soon = rs[1].cas, false
	}
	p.wrote = now
}

// leave returns the commands that remove the marks of the claim.
func (p *place) leave(o *Options, item string) (commands []string) {
	if p.next != 0 {
		commands = append(commands, fmt.Sprintf("md %s C%d\r\n", o.next(item), p.next))
	}
	if p.wait != 0 {
		commands = append(commands, fmt.Sprintf("md %s C%d\r\n", o.mark(item), p.wait))
	}
	p.soon = p.soon || p.next != 0 // unless this request acquires the key
	p.next, p.wait = 0, 0
	return commands
}

// pause returns how long a refused claim should wait, and whether the pauses stay short.
func (p *place) pause() (pause time.Duration, next bool) {
	switch {
	case p.next != 0:
		return max(nextPause, time.Since(p.since)/100), true
	case p.soon:
		return nextPause, true
	case p.wrote.IsZero():
		return nextPause, false
	case p.rested:
		return backoff.Pause, false
	}
	return firstPause, false
}

// contended reports whether somebody waits for the key that the job releases.
func (j *job) contended() bool { return len(j.marked) > 0 && j.marked[0].code == "HD" }
