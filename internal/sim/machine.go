package sim

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
)

// A machine is the machine of a process. While the machine is suspended, the monotonic
// time and the timers stand still.
type machine struct {
	p     *Process
	began time.Time

	mu    sync.Mutex
	from  time.Time     // start of the suspend; zero unless suspended
	until time.Time     // end of the last suspend
	slept time.Duration // in all finished suspends
}

var _ boottime.Host = (*machine)(nil)

// Ran implements [boottime.Host].
func (m *machine) Ran(t time.Time) time.Duration { return t.Sub(m.began) - m.Slept(t) }

// Slept implements [boottime.Host].
func (m *machine) Slept(t time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.from.IsZero() {
		return m.slept
	}
	return m.slept + max(t.Sub(m.from), 0)
}

// NewTimer implements [boottime.Host]. The timer does not fire while the process is
// stopped.
func (m *machine) NewTimer(d time.Duration) boottime.Timer {
	t := &timer{m: m, fired: make(chan time.Time, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due = m.Ran(time.Now()) + d
	t.timer = time.AfterFunc(d, t.ring)
	t.timer.C = t.fired
	return boottime.Timer{Timer: t.timer, Rewind: t.rewind}
}

// suspend begins a suspend, resume ends the suspend. resume reports whether the machine
// was suspended.
func (m *machine) suspend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.from = time.Now()
}

func (m *machine) resume() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.from.IsZero() {
		return false
	}
	m.until = time.Now()
	m.slept += m.until.Sub(m.from)
	m.from = time.Time{}
	return true
}

// nap is the longest time after a suspend in which Done of a lost lock may stay open,
// because the timers stood still.
const nap = time.Second

// drowsy reports whether a suspend ended just now.
func (m *machine) drowsy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.until.IsZero() && time.Since(m.until) <= nap
}

// A timer is a timer of a machine.
type timer struct {
	m     *machine
	fired chan time.Time

	mu    sync.Mutex
	timer *time.Timer
	due   time.Duration // by the machine's monotonic time
}

func (t *timer) rewind(d time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due = t.m.Ran(time.Now()) + d
	return t.timer.Reset(d)
}

// ring fires the timer, unless a suspend has put it off.
func (t *timer) ring() {
	t.m.p.gate()
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := t.due - t.m.Ran(time.Now()); left > 0 {
		t.timer.Reset(left)
		return
	}
	select {
	case t.fired <- time.Now():
	default:
	}
}
