package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Faults are the faults of a link, as probabilities from 0 to 1.
type Faults struct {
	Request float64       // the request is lost
	Reply   float64       // the reply is lost
	Twice   float64       // the request arrives again
	Refuse  float64       // the call fails at once, before anything is sent
	Reset   float64       // the call fails after sending; the request may have arrived
	Wake    float64       // a wake-up is lost
	Cut     float64       // the link is cut for up to Most after a grant
	Late    float64       // a message takes up to Most, not up to Delay
	Delay   time.Duration // each way
	Most    time.Duration
	Start   time.Duration // the first calls over a new connection take up to Start
}

// A Way is a direction of a link.
type Way uint8

const (
	Out  Way = 1 << iota // to the store
	Back                 // from the store
	Both = Out | Back
)

// A Window is a time in which a link is cut.
type Window struct {
	From, To time.Duration
	Way      Way
	Holds    bool // messages arrive when the link is whole again; otherwise messages are lost
}

func (w Window) String() string {
	return fmt.Sprintf("%s until %v", w.Way, w.To)
}

func (w Way) String() string { return [...]string{"mended", "out", "back", "both ways"}[w] }

// A Link is the network between a process and a server.
type Link struct {
	Faults Faults // set Faults before the first call
	Plan   []Window

	p    *Process
	name string

	mu     sync.Mutex
	cut    Way           // by Cut
	mended time.Duration // when the last Cut, or a suspend, ended
	dialed time.Duration // when the last connection was begun; negative: never
	out    time.Duration // when the first request over the connection arrives
	back   time.Duration // when the first answer arrives
	calm   bool
}

// Errors of a link, like the errors of a client library.
var (
	errRefused = errors.New("connection refused")
	errReset   = errors.New("connection reset by peer")
)

// Cut cuts the link from now on in the given ways; 0 mends the link. A message sent over a
// cut link is lost.
func (l *Link) Cut(way Way) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut != 0 && way == 0 {
		l.mended = l.p.w.Now()
	}
	l.cut = way
	l.event(Event{Step: Fault, Call: "cut"}, way)
}

// mend ends connections: the next call begins a new one.
func (l *Link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mended = l.p.w.Now()
}

// brokenSince reports whether connections begun at t have ended by Cut or a suspend.
func (l *Link) brokenSince(t time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mended > t
}

// granted may cut the link: a new grant is the most sensitive moment.
func (l *Link) granted(key string) {
	r, faults := l.rand("granted", key), l.faults()
	if r.Float64() >= faults.Cut {
		return
	}
	l.p.w.Count.add(&l.p.w.Count.Cuts)
	now := l.p.w.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	win := Window{From: now, To: now + upto(r, faults.Most), Way: pick(r, Out, Back, Both), Holds: r.IntN(2) == 0}
	l.Plan = append(l.Plan, win)
	l.event(Event{Step: Fault, Call: "cut", Key: key}, win)
}

// blocked reports whether a message is lost now, or how long the message is held.
func (l *Link) blocked(way Way) (lost bool, held time.Duration) {
	if l.p.Dead() {
		return true, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut&way != 0 {
		return true, 0
	}
	now := l.p.w.Now()
	for _, win := range l.Plan {
		if win.Way&way == 0 || now < win.From || now >= win.To {
			continue
		}
		if !win.Holds {
			return true, 0
		}
		held = max(held, win.To-now)
	}
	if way == Out {
		l.connect(now)
		return false, max(held, l.out-now)
	}
	return false, max(held, l.back-now)
}

// connect begins a connection if the link has none, because the link is new or whole
// again. The caller holds mu.
func (l *Link) connect(now time.Duration) {
	if l.dialed >= l.whole(now) {
		return
	}
	l.dialed = now
	if start := l.Faults.Start; start > 0 && !l.calm {
		r := l.rand("connect", "")
		one, other := now+upto(r, start), now+upto(r, start)
		l.out, l.back = min(one, other), max(one, other)
		l.p.w.Count.add(&l.p.w.Count.SlowStarts)
		l.event(Event{Step: Fault, Call: "connect"}, l.back-now)
	}
}

// whole returns the time since which nothing has cut the link. A cut that only holds
// messages back does not end a connection.
func (l *Link) whole(now time.Duration) time.Duration {
	since := l.mended
	for _, win := range l.Plan {
		if !win.Holds && win.To <= now {
			since = max(since, win.To)
		}
	}
	return since
}

func (l *Link) event(e Event, outcome any) {
	e.Process, e.Routine = l.p.Name, l.name
	l.p.w.Trace.add(e, outcome)
}

// A fate is the outcome of one call.
type fate struct {
	lost, unanswered, twice, refused, reset bool
	there, back, again                      time.Duration
}

// fate draws from the seed, the call and the time. So the draw does not depend on which of
// two goroutines calls first.
func (l *Link) fate(call, key string) (f fate) {
	r, faults := l.rand(call, key), l.faults()
	c := &l.p.w.Count
	chance := func(of float64, n *int64) bool {
		hit := r.Float64() < of
		if hit {
			c.add(n)
		}
		return hit
	}
	f.lost = chance(faults.Request, &c.LostRequests)
	f.unanswered = chance(faults.Reply, &c.LostReplies)
	f.twice = chance(faults.Twice, &c.Duplicates)
	f.refused = chance(faults.Refuse, &c.Refused)
	f.reset = chance(faults.Reset, &c.Resets)
	f.there, f.back, f.again = l.delay(r, faults), l.delay(r, faults), l.delay(r, faults)
	return f
}

func (l *Link) rand(call, key string) *rand.Rand {
	return l.p.w.rand(int64(l.p.w.Now()), l.p.Name, l.name, call, key)
}

func (l *Link) delay(r *rand.Rand, faults Faults) time.Duration {
	most := faults.Delay
	if r.Float64() < faults.Late {
		most = max(most, faults.Most)
		l.p.w.Count.add(&l.p.w.Count.Late)
	}
	return upto(r, most)
}

// A reply is an answer over a link.
type reply[T any] struct {
	value T
	err   error
}

// Send carries a call to a server and the answer back. Send returns when the answer is
// there, the context ends, or the link fails. The server may carry the call out later,
// twice, or not at all.
func Send[T any](ctx context.Context, l *Link, call, key, claim string, do func() T) (T, error) {
	l.p.gate()
	defer l.p.gate()
	f := l.fate(call, key)
	note := func(s Step, outcome any) {
		l.event(Event{Step: s, Call: call, Key: key, Claim: claim}, outcome)
	}
	var none T
	l.p.w.Count.add(&l.p.w.Count.Calls)
	if f.refused {
		note(Fault, errRefused)
		return none, fmt.Errorf("%w: %w", driver.ErrUnwritten, errRefused)
	}
	note(Sent, nil)
	replies := make(chan reply[T], 3)
	answer := func(v T) {
		lost, held := l.blocked(Back)
		if lost || f.unanswered {
			note(Fault, "reply lost")
			return
		}
		l.after(held+f.back, func() { replies <- reply[T]{value: v} })
	}
	arrive := func(first bool) {
		v := do()
		note(Arrive, v)
		if first {
			answer(v)
		}
	}
	lost, held := l.blocked(Out)
	if lost || f.lost {
		note(Fault, "request lost")
	} else {
		l.after(held+f.there, func() { arrive(true) })
		if f.twice {
			l.after(held+f.again, func() { arrive(false) })
		}
	}
	if f.reset {
		l.after(f.again, func() { replies <- reply[T]{err: errReset} })
	}
	select {
	case r := <-replies:
		if r.err != nil {
			note(Answer, r.err)
		} else {
			note(Answer, r.value)
		}
		return r.value, r.err
	case <-ctx.Done():
		note(Answer, ctx.Err())
		return none, ctx.Err()
	}
}

// String shows the reply in a trace. A trace must not contain addresses of memory.
func (r reply[T]) String() string {
	if r.err != nil {
		return r.err.Error()
	}
	return fmt.Sprint(r.value)
}

// ask sends a call. The server may answer with an error.
func ask[T any](ctx context.Context, l *Link, call, key string, do func() (T, error)) (T, error) {
	r, err := Send(ctx, l, call, key, "", func() reply[T] {
		value, err := do()
		return reply[T]{value, err}
	})
	if err == nil {
		err = r.err
	}
	return r.value, err
}

// Calm ends all faults of the link for good.
func (l *Link) Calm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.Plan, l.calm = 0, nil, true
}

// faults are the current faults.
func (l *Link) faults() Faults {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calm {
		return quiet(0)
	}
	return l.Faults
}

// after calls f when a message that takes d has arrived: at once if d is 0.
func (l *Link) after(d time.Duration, f func()) {
	if d <= 0 {
		f()
		return
	}
	l.p.w.After(d, f)
}
