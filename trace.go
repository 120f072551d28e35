package holdfast

import "time"

// A Trace observes locks. Each function may be nil. They are called from the
// goroutine in which the event happens, must be quick, and must not call the
// Locker.
type Trace struct {
	Tried    func(Event) // the store was asked and did not grant; Err says why
	Locked   func(Event) // a caller has got a lock after Waited
	Renewed  func(Event) // the lease goes on
	AtRisk   func(Event) // half of the validity is gone without a renewal; Err is the last failure
	Lost     func(Event) // the lock ended after Held without being unlocked; Err is its LostError
	Unlocked func(Event) // the lock was unlocked after Held; Err is nil if the store has confirmed it
}

// An Event is one step in the life of a lock.
type Event struct {
	Key    string // without the prefix
	Owner  string
	Fence  uint64 // 0 if there is none yet
	Waited time.Duration
	Held   time.Duration
	Err    error
}

// timed reports whether anybody asks how long a wait took.
func (t *Trace) timed() bool { return t.Tried != nil || t.Locked != nil }

func emit(hook func(Event), e Event) {
	if hook != nil {
		hook(e)
	}
}
