package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
)

// Read builds a Run from the history files of a run. Read gives up when ctx ends.
func Read(ctx context.Context, paths []string) (*Run, error) {
	b := newBuilder()
	for _, path := range paths {
		line := 0
		for e, err := range history.Read(path) {
			if err = cmp.Or(ctx.Err(), err); err != nil {
				return nil, err
			}
			line++
			if err := b.add(e); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, line, err)
			}
		}
	}
	return b.done(), nil
}

// Of builds a Run from the events of a history. Events of a process are in order, and every
// end follows its beginning; otherwise Of panics.
func Of(events []history.Event) *Run {
	b := newBuilder()
	for _, e := range events {
		if err := b.add(e); err != nil {
			panic(err)
		}
	}
	return b.done()
}

// lateWrite is how long the server of a register may still apply a request after an error,
// or after the end of the process.
const lateWrite = int64(5 * time.Second)

type holdID struct {
	who Who
	op  int
	key string
}

type builder struct {
	run    *Run
	holds  map[holdID]*Hold
	asking map[Who][]*Hold  // of the current operation
	open   map[Who]*Access  // called, not answered
	lives  map[[2]int]*Life // by worker and life
	faults map[int]*Fault   // by number
	order  []int            // of their numbers
	last   map[[2]int]int64 // the last news of a life
}

func newBuilder() *builder {
	return &builder{
		run:    &Run{},
		holds:  make(map[holdID]*Hold),
		asking: make(map[Who][]*Hold),
		open:   make(map[Who]*Access),
		lives:  make(map[[2]int]*Life),
		faults: make(map[int]*Fault),
		last:   make(map[[2]int]int64),
	}
}

// add takes in an event. The error reports that an earlier event is missing, as after a
// full disk.
func (b *builder) add(e history.Event) error {
	who := Who{e.Worker, e.Life, e.Client}
	if at := [2]int{e.Worker, e.Life}; e.Kind != history.Died {
		b.last[at] = max(b.last[at], e.At)
	}
	switch e.Kind {
	case history.Asked:
		b.ask(who, e)
	case history.Refused:
		for _, h := range b.asking[who] {
			if h.Op == e.Op {
				h.Refused, h.Note = e.At, e.Note
			}
		}
	case history.Looks, history.Writes, history.Looked, history.Wrote, history.Viewed:
		b.access(who, e)
	case history.Effect:
		if !e.No { // a holder that has lost the lock is no owner any more
			b.run.Effects = append(b.run.Effects, Effect{who, e.Key, e.Token, e.Value, e.At})
		}
	case history.Result:
		b.run.Results = append(b.run.Results, Effect{who, e.Key, 0, e.Value, e.At})
	case history.Fault:
		b.faults[e.Op] = &Fault{Span: Span{e.At, Never}, Nemesis: e.Mode, Worker: e.Worker, Step: e.Step, Role: e.Role}
		b.order = append(b.order, e.Op)
	case history.Heal:
		f := b.faults[e.Op]
		if f == nil {
			return fmt.Errorf("fault %d is over, and nothing tells that it has begun", e.Op)
		}
		f.To, f.Evicted, f.Touched = e.At, strings.Fields(e.Note), e.Value
	case history.Failed:
		b.run.Failures = append(b.run.Failures, fmt.Sprintf("worker %d.%d: %s", e.Worker, e.Life, e.Note))
	case history.Born, history.Died, history.Bye, history.Stall:
		b.life(e)
	default:
		if h := b.holds[holdID{who, e.Op, e.Key}]; h != nil {
			h.add(e)
		}
	}
	return nil
}

func (b *builder) ask(who Who, e history.Event) {
	h := &Hold{
		Who: who, Op: e.Op, Key: e.Key, Mode: e.Mode, Weight: e.Weight, Limit: e.Limit,
		Asked: e.At, Got: Never, Until: Never, Lost: Never, Unlocked: Never, Freed: Never,
		Refused: Never, Dying: Never, Died: Never,
	}
	if now := b.asking[who]; len(now) > 0 && now[0].Op != e.Op {
		b.asking[who] = nil
	}
	b.asking[who] = append(b.asking[who], h)
	b.holds[holdID{who, e.Op, e.Key}] = h
	b.run.Holds = append(b.run.Holds, h)
}

func (h *Hold) add(e history.Event) {
	switch e.Kind {
	case history.Got:
		h.Got, h.Token, h.Late = e.At, e.Token, e.No
		h.extend(e.Until)
	case history.Held:
		h.Held = e.At
		h.extend(e.Until)
	case history.Entered:
		h.Entered = append(h.Entered, e)
	case history.Lost:
		h.Lost, h.Note = e.At, e.Note
	case history.Unlocked:
		h.Unlocked = e.At
	case history.Freed:
		h.Freed = e.At
		if e.Note != "" {
			h.Note = e.Note
		}
	}
}

func (h *Hold) extend(until int64) {
	if until != 0 {
		h.Until = until
	}
}

func (b *builder) access(who Who, e history.Event) {
	switch e.Kind {
	case history.Looks, history.Writes:
		if a := b.open[who]; a != nil { // which has had an error
			a.Return, a.Unknown = e.At+lateWrite, true
		}
		a := &Access{
			Who: who, Key: e.Key, Token: e.Token, Value: e.Value, Seen: e.Seen,
			Look: e.Kind == history.Looks, Write: e.Kind == history.Writes,
			Call: e.At, Return: Never,
		}
		b.open[who] = a
		b.run.Accesses = append(b.run.Accesses, a)
	case history.Viewed:
		b.run.Accesses = append(b.run.Accesses, &Access{Who: who, Key: e.Key, Value: e.Value, Call: e.Since, Return: e.At})
	default:
		if a := b.open[who]; a != nil {
			// Two goroutines that work for a client at once, as a bug may let them, record
			// their events in any order.
			a.Return, a.No = max(e.At, a.Call), e.No
			if a.Look {
				a.Value = e.Value
			}
			delete(b.open, who)
		}
	}
}

func (b *builder) life(e history.Event) {
	at := [2]int{e.Worker, e.Life}
	l := b.lives[at]
	if l == nil {
		l = &Life{Worker: e.Worker, Life: e.Life, Dying: Never, Died: Never}
		b.lives[at] = l
		b.run.Lives = append(b.run.Lives, l)
	}
	switch e.Kind {
	case history.Born:
		l.Born = e.At
	case history.Died:
		l.Died, l.Dying, l.End = e.At, cmp.Or(e.Since, e.At), e.Note
	case history.Bye:
		l.Bye, l.Remains = true, e.Note
	case history.Stall:
		l.Stalls = append(l.Stalls, Span{e.Since, e.At})
	}
}

// done copies the deaths of processes to the holds. A crashed process may have been dead
// for a while before the parent noticed.
func (b *builder) done() *Run {
	for at, l := range b.lives {
		if l.crashed() {
			l.Dying = min(l.Dying, b.last[at])
		}
	}
	for _, h := range b.run.Holds {
		if l := b.lives[[2]int{h.Who.Worker, h.Who.Life}]; l != nil {
			h.Dying, h.Died = l.Dying, l.Died
		}
	}
	for _, a := range b.open {
		a.Unknown = true
		if l := b.lives[[2]int{a.Who.Worker, a.Who.Life}]; l != nil {
			a.Return = min(l.Died, Never-lateWrite) + lateWrite
		}
	}
	for _, n := range b.order {
		b.run.Faults = append(b.run.Faults, *b.faults[n])
	}
	slices.SortFunc(b.run.Faults, func(a, b Fault) int { return cmp.Compare(a.From, b.From) })
	return b.run
}
