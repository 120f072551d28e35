package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Step is the kind of an [Event].
type Step string

const (
	Begin  Step = "begin"  // a goroutine calls the Locker
	End    Step = "end"    // and the call returns
	Look   Step = "look"   // a holder uses the guarded data
	Lost   Step = "lost"   // a holder finds that the lock is lost
	Sent   Step = "send"   // a call leaves a process
	Arrive Step = "arrive" // the store carries the call out
	Answer Step = "answer" // the store answers the call
	Push   Step = "push"   // the store sends a wake-up or a loss
	Fault  Step = "fault"  // a fault begins or ends
	Wrong  Step = "wrong"  // the judge has found a violation
)

// An Event is one line of a trace.
type Event struct {
	At      time.Duration `json:"at"` // virtual time since the world began
	Process string        `json:"process,omitempty"`
	Routine string        `json:"routine,omitempty"` // or the name of a link
	Step    Step          `json:"step"`
	Call    string        `json:"call,omitempty"`
	Key     string        `json:"key,omitempty"`
	Claim   string        `json:"claim,omitempty"` // c1, c2: in the order in which links first saw the claims
	Token   uint64        `json:"token,omitempty"`
	Outcome string        `json:"outcome,omitempty"`
}

func (e Event) String() string { return fmt.Sprintf("%12v  %s", e.At, e.text()) }

// text is the event without its time.
func (e Event) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %-6s", e.Process+"/"+e.Routine, e.Step)
	for _, s := range []string{e.Call, e.Key, e.Claim} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if e.Token != 0 {
		fmt.Fprintf(&b, " #%d", e.Token)
	}
	if e.Outcome != "" {
		b.WriteString(": " + e.Outcome)
	}
	return b.String()
}

// A Trace lists the events of a world, in order.
type Trace struct {
	seed    uint64
	most    int // events; a world with more has no end. 0: the trace keeps no events
	mu      sync.Mutex
	began   time.Time
	entries []entry
	claims  map[string]claim // by id
}

// A claim holds the name of a claim in a trace, and the public id. The id of a claim is
// random.
type claim struct{ name, public string }

// An entry is an event whose outcome is formatted on demand: in most worlds nobody reads
// the trace.
type entry struct {
	Event
	outcome any
}

// mostEvents is far more than in any world of Run that comes to an end.
const mostEvents = 300_000

func (t *Trace) add(e Event, outcome any) {
	if t.most == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e.At = time.Since(t.began)
	t.entries = append(t.entries, entry{e, outcome})
	if len(t.entries) == t.most {
		panic(fmt.Sprintf("seed %d: endless: %d events, the last is %v", t.seed, t.most, e))
	}
}

// claim is the name of a claim in the trace.
func (t *Trace) claim(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known(id).name
}

// public is the public id of a claim.
func (t *Trace) public(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known(id).public
}

func (t *Trace) known(id string) claim {
	if t.most == 0 {
		return claim{public: driver.PublicID(id)}
	}
	c, ok := t.claims[id]
	if !ok {
		c = claim{fmt.Sprint("c", len(t.claims)+1), driver.PublicID(id)}
		t.claims[id] = c
	}
	return c
}

// Events returns the events so far.
func (t *Trace) Events() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	events := make([]Event, len(t.entries))
	for i, e := range t.entries {
		events[i] = e.Event
		if e.outcome != nil {
			events[i].Outcome = fmt.Sprint(e.outcome)
		}
	}
	return events
}

// tail renders the last n events of a key, or of all keys if key is "".
func tail(events []Event, key string, n int) string {
	var lines []string
	for _, e := range events {
		if key == "" || e.Key == key || e.Key == "" {
			lines = append(lines, e.String())
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
