package sim

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// A Kind is the way in which a lock shares the key.
type Kind string

const (
	Exclusive Kind = ""
	Shared    Kind = "shared"
	Slots     Kind = "slots"
	Upgrade   Kind = "upgrade" // of a shared lock, by [Held.Upgrade]
)

// A Want is a lock that a goroutine wants. The zero values are the defaults of the
// options.
type Want struct {
	Key      string
	Kind     Kind
	Slots    int // of the key
	Weight   int // in slots
	Try      bool
	Wait     time.Duration
	Every    time.Duration // the longest sleep between two tries; 0: wait
	TTL      time.Duration
	NoRenew  bool
	MaxHold  time.Duration
	Progress time.Duration
	MinHold  time.Duration
	Note     string
	Fenced   bool
	Single   bool // with the option Exclusive, which forbids Reenter
}

func (w Want) options() (opts []holdfast.LockOption) {
	add := func(wanted bool, o func() holdfast.LockOption) {
		if wanted {
			opts = append(opts, o())
		}
	}
	add(w.Kind == Shared, holdfast.Shared)
	add(w.Kind == Slots && w.Weight <= 1, func() holdfast.LockOption { return holdfast.Slots(w.Slots) })
	add(w.Kind == Slots && w.Weight > 1, func() holdfast.LockOption { return holdfast.SlotsOf(w.Weight, w.Slots) })
	add(w.Wait > 0, func() holdfast.LockOption { return holdfast.Wait(w.Wait) })
	add(w.Every > 0, func() holdfast.LockOption { return holdfast.Backoff(w.Every/2, w.Every) })
	add(w.TTL > 0, func() holdfast.LockOption { return holdfast.TTL(w.TTL) })
	add(w.NoRenew, holdfast.NoRenew)
	add(w.MaxHold > 0, func() holdfast.LockOption { return holdfast.MaxHold(w.MaxHold) })
	add(w.Progress > 0, func() holdfast.LockOption { return holdfast.Progress(w.Progress) })
	add(w.MinHold > 0, func() holdfast.LockOption { return holdfast.MinHold(w.MinHold) })
	add(w.Note != "", func() holdfast.LockOption { return holdfast.Note(w.Note) })
	add(w.Fenced, holdfast.Fenced)
	add(w.Single, holdfast.Exclusive)
	return opts
}

func (w Want) limit() int64 {
	if w.Kind == Slots {
		return int64(w.Slots)
	}
	return driver.MaxWeight
}

func (w Want) weight() int64 {
	switch w.Kind {
	case Exclusive, Upgrade:
		return driver.MaxWeight
	case Slots:
		return int64(max(w.Weight, 1))
	}
	return 1
}

// queues reports whether the call waits in a queue.
func (w Want) queues() bool { return w.Kind != Upgrade && !w.Try && w.Every == 0 }

// call names the call for the trace.
func (w Want) call() string {
	name := "lock"
	switch {
	case w.Try:
		name = "trylock"
	case w.Every > 0:
		name = "retry"
	}
	switch w.Kind {
	case Shared:
		name += " shared"
	case Upgrade:
		name += " upgrade"
	case Slots:
		name += fmt.Sprintf(" slots %d/%d", w.weight(), w.Slots)
	}
	return name
}
