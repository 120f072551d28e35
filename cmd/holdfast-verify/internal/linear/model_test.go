package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// A step is what an operation does.
type step string

const (
	locks   step = "locks"
	refused step = "is refused"
	holds   step = "holds"
	unlocks step = "unlocks"
	loses   step = "loses" // the lock: the lease ended, or the process died
	writes  step = "writes"
	stale   step = "writes too late" // and is refused
	unheard step = "writes, or not"  // no answer came
)

// An op is an operation. It took effect at one moment between from and to.
type op struct {
	process, routine string
	step             step
	token            uint64
	value            int // that is written
	seen             int // that was overwritten
	from, to         int64
}

func (o op) String() string {
	s := fmt.Sprintf("%s/%s %s", o.process, o.routine, o.step)
	if o.token > 0 {
		s += fmt.Sprintf(" #%d", o.token)
	}
	switch o.step {
	case writes:
		s += fmt.Sprintf(" %d over %d", o.value, o.seen)
	case stale, unheard:
		s += fmt.Sprintf(" %d", o.value)
	}
	return s
}

// A state is that of an exclusive lock, and of a register that refuses tokens below the
// largest that it has seen.
type state struct {
	holder uint64 // token of the holder, 0 if the lock is free
	top    uint64 // the largest token that was granted
	fence  uint64 // the largest token that has written
	value  int
}

// after returns the states that the operation may lead to.
func (s state) after(o op) []any {
	next := s
	possible := false
	switch o.step {
	case locks:
		possible = s.holder == 0 && o.token > s.top
		next.holder, next.top = o.token, o.token
	case refused:
		possible = s.holder != 0
	case holds:
		possible = s.holder == o.token
	case unlocks, loses:
		possible = s.holder == o.token
		next.holder = 0
	case writes:
		possible = o.token >= s.fence && o.seen == s.value
		next.fence, next.value = o.token, o.value
	case stale:
		possible = o.token < s.fence
	case unheard:
		if o.token < s.fence {
			return []any{s}
		}
		next.fence, next.value = o.token, o.value
		return []any{s, next}
	}
	if !possible {
		return nil
	}
	return []any{next}
}

var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(s, input, _ any) []any { return s.(state).after(input.(op)) },
}).ToModel()
