package sim

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
)

// silent is the default Logger of processes.
var silent = slog.New(slog.DiscardHandler)

// A Process is a Locker behind links.
type Process struct {
	Name   string
	Locker *holdfast.Locker

	// Rate is how many seconds the clock of this process counts in a second of the stores:
	// 0.99 to 1.01. The process runs in the time of the world, so the stores count the TTL
	// of the claims by a different clock. Set Rate before the first lock; 0 is 1.
	Rate float64

	w        *World
	machine  *machine
	ctx      context.Context // ends with the process
	cancel   context.CancelFunc
	poll     time.Duration // the longest sleep if the store cannot push, else 0
	ttl      time.Duration
	links    []*Link
	routines sync.WaitGroup

	mu      sync.Mutex
	thawed  chan struct{} // nil unless the process is stopped; closed when it goes on
	woke    time.Time     // when the process last went on
	killed  bool
	closing bool // the Locker is closed, or about to be closed
}

// Link returns the link of the process with a name. The first call makes the link.
func (p *Process) Link(name string) *Link {
	for _, l := range p.links {
		if l.name == name {
			return l
		}
	}
	l := &Link{p: p, name: name, dialed: -1}
	p.links = append(p.links, l)
	return l
}

// Links returns the links of the process.
func (p *Process) Links() []*Link { return p.links }

// clocked is a store with the clock of the process. The outermost store of a process notes the
// losses of which the process learns.
type clocked struct {
	driver.Store
	clock *boottime.Clock
	p     *Process // of the outermost store
}

var _ boottime.Simulator = clocked{}

// Renew implements [driver.Store].
func (c clocked) Renew(ctx context.Context, rs []driver.Renewal) []error {
	errs := c.Store.Renew(ctx, rs)
	for i, err := range errs {
		if c.p != nil && errors.Is(err, driver.ErrLost) {
			c.p.gone(rs[i].Key, driver.PublicID(rs[i].ID))
		}
	}
	return errs
}

// noting is a Notifier that notes the losses of which the process learns.
type noting struct {
	driver.Notifier
	p *Process
}

// Notify implements [driver.Notifier].
func (n noting) Notify(lost func(key, id string, err error)) (stop func()) {
	return n.Notifier.Notify(func(key, id string, err error) {
		lost(key, id, err)
		n.p.gone(key, driver.PublicID(id))
	})
}

// gone makes the judge check that the process tells the holder of a claim at once that the claim
// has ended.
func (p *Process) gone(key, id string) {
	p.w.After(time.Millisecond, func() { p.w.Judge.tells(p, key, id, "has ended, as the store has said") })
}

// Clock implements [boottime.Simulator].
func (c clocked) Clock() *boottime.Clock { return c.clock }

// stored is how long the stores keep a claim with this TTL, in the time of the process.
func (p *Process) stored(ttl time.Duration) time.Duration {
	if p.Rate == 0 {
		return ttl
	}
	return time.Duration(float64(ttl) * p.Rate)
}

// Freeze stops the process until Thaw, as SIGSTOP does: no goroutine of the process goes
// on past a call, no timer fires, no message leaves or arrives.
func (p *Process) Freeze() { p.stop("frozen", func() {}) }

// Suspend stops the process until Thaw, as the sleep of a machine does. The monotonic time
// stands still as well, and the machine wakes without connections.
func (p *Process) Suspend() { p.stop("suspended", p.machine.suspend) }

func (p *Process) stop(how string, also func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thawed == nil && !p.killed {
		p.thawed = make(chan struct{})
		p.event(Event{Step: Fault, Call: "process"}, how)
		also()
	}
}

// Thaw lets the process go on.
func (p *Process) Thaw() {
	if p.goOn() {
		p.w.Judge.wakes(p)
	}
}

// goOn reports whether a suspend has ended.
func (p *Process) goOn() (awake bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thawed == nil {
		return false
	}
	if awake = p.machine.resume(); awake {
		for _, l := range p.links {
			l.mend()
		}
	}
	p.woke = time.Now()
	p.event(Event{Step: Fault, Call: "process"}, "goes on")
	close(p.thawed)
	p.thawed = nil
	return awake
}

// Kill ends the process at once. Goroutines end at their next step, no message leaves, and
// claims stay in the stores until their TTL.
func (p *Process) Kill() {
	p.mu.Lock()
	if p.killed || p.closing {
		p.mu.Unlock()
		return
	}
	p.killed = true
	p.event(Event{Step: Fault, Call: "process"}, "killed")
	if p.thawed != nil {
		close(p.thawed)
		p.thawed = nil
	}
	p.mu.Unlock()
	p.w.Judge.closed(p)
	p.cancel()
}

// Dead reports whether the process was killed.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// unaware reports whether the process cannot know of losses, because the process is
// stopped or has just gone on.
func (p *Process) unaware() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thawed != nil || p.killed || p.woke.Equal(time.Now())
}

// restless reports whether the process was ever stopped.
func (p *Process) restless() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thawed != nil || !p.woke.IsZero()
}

// stoppedSince reports whether the process was stopped at t, or later.
func (p *Process) stoppedSince(t time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thawed != nil || p.killed || !p.woke.IsZero() && p.woke.Sub(p.w.Trace.began) >= t
}

// ended reports whether the Locker is closed, or the process dead.
func (p *Process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed || p.closing
}

// gate returns once the process is not stopped. It reports whether the process lives.
func (p *Process) gate() bool {
	for {
		p.mu.Lock()
		thawed, killed := p.thawed, p.killed
		p.mu.Unlock()
		if thawed == nil {
			return !killed
		}
		<-thawed
	}
}

// deliver calls f once the process is not stopped. f does not block.
func (p *Process) deliver(f func()) {
	p.mu.Lock()
	thawed, killed := p.thawed, p.killed
	p.mu.Unlock()
	switch {
	case killed:
	case thawed == nil:
		f()
	default:
		p.w.flight.Go(func() {
			if p.gate() {
				f()
			}
		})
	}
}

// Close closes the Locker. An error caused by the faults of the links is not an error of
// the world.
func (p *Process) Close() {
	p.Thaw()
	p.mu.Lock()
	closing := p.closing
	p.closing = true
	p.mu.Unlock()
	if closing {
		return
	}
	p.w.Judge.closed(p)
	began := time.Now()
	_ = p.Locker.Close()
	if took := time.Since(began); took > longestClose {
		p.w.Judge.Fail("", "close", p.Name, "Close took "+took.String())
	}
	p.cancel()
}

// longestClose is the longest time that Close takes if no answer comes: a second for each
// call that ends locks, the grace of the cleaner, and for each of them a call already on
// the way.
const longestClose = 8 * time.Second

// Go starts a goroutine of the process.
func (p *Process) Go(name string, f func(r *Routine)) {
	r := &Routine{Name: name, P: p, Rand: p.w.Rand("routine", p.Name, name)}
	p.routines.Go(func() {
		r.gate()
		f(r)
	})
}

func (p *Process) event(e Event, outcome any) {
	e.Process = p.Name
	p.w.Trace.add(e, outcome)
}

// A Routine is a goroutine of a process.
type Routine struct {
	Name string
	P    *Process
	Rand *rand.Rand
}

// gate ends the goroutine if the process was killed, and waits while the process is
// stopped.
func (r *Routine) gate() {
	if !r.P.gate() {
		runtime.Goexit()
	}
}

// Sleep pauses the goroutine, in the time of the machine.
func (r *Routine) Sleep(d time.Duration) {
	m := r.P.machine
	until := m.Ran(time.Now()) + d
	for {
		time.Sleep(d)
		r.gate()
		if d = until - m.Ran(time.Now()); d <= 0 {
			return
		}
	}
}

// halts stops a process for less than d: by a signal, or by a suspend of the machine.
func (r *Routine) halts(victim *Process, d time.Duration) {
	count := &r.P.w.Count
	if r.Rand.IntN(2) == 0 {
		count.add(&count.Stops)
		victim.Freeze()
	} else {
		count.add(&count.Suspends)
		victim.Suspend()
	}
	r.Sleep(r.Upto(d))
	victim.Thaw()
}

// Upto draws a duration below d.
func (r *Routine) Upto(d time.Duration) time.Duration { return upto(r.Rand, d) }

// Context ends after d, or with the process or the world.
func (r *Routine) Context(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.P.ctx, d)
}

// Event adds an event of the goroutine to the trace.
func (r *Routine) Event(e Event, outcome any) {
	e.Process, e.Routine = r.P.Name, r.Name
	r.P.w.Trace.add(e, outcome)
}

func upto(r *rand.Rand, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(r.Int64N(int64(d)))
}
