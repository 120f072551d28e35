package sim

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/page"
)

// A lane is a goroutine in a timeline.
type lane struct {
	process int
	name    string
	calls   map[string]*call // by key
}

// A call is a lock of a lane, from the call that wants the lock to the release.
type call struct {
	kind       string
	token      uint64
	asked, got time.Duration
	held, lost bool
}

// A timeline follows the events of a world.
type timeline struct {
	w     *World
	lanes []*lane
	keys  []string
	ended func(l *lane, key string, c *call, at time.Duration) // may be nil
}

// timeline returns a timeline before the first event.
func (w *World) timeline(events []Event) *timeline {
	t := &timeline{w: w}
	for _, e := range events {
		if e.Step != Begin {
			continue
		}
		if t.lane(e) == nil {
			t.lanes = append(t.lanes, &lane{process: t.process(e), name: laneOf(e), calls: make(map[string]*call)})
		}
		if e.Key != "" && !slices.Contains(t.keys, e.Key) {
			t.keys = append(t.keys, e.Key)
		}
	}
	slices.SortFunc(t.lanes, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(a.process, b.process), strings.Compare(a.name, b.name))
	})
	slices.Sort(t.keys)
	return t
}

func laneOf(e Event) string { return e.Process + "/" + e.Routine }

func (t *timeline) lane(e Event) *lane {
	i := slices.IndexFunc(t.lanes, func(l *lane) bool { return l.name == laneOf(e) })
	if i < 0 {
		return nil
	}
	return t.lanes[i]
}

// process is the number of the process of an event; -1 for none.
func (t *timeline) process(e Event) int {
	return slices.IndexFunc(t.w.processes, func(p *Process) bool { return p.Name == e.Process })
}

// follow takes the next event.
func (t *timeline) follow(e Event) {
	l := t.lane(e)
	if l == nil {
		return
	}
	c := l.calls[e.Key]
	name, kind, _ := strings.Cut(e.Call, " ")
	asks := name == "lock" || name == "trylock"
	switch {
	case e.Step == Begin && asks && c == nil:
		l.calls[e.Key] = &call{kind: cmp.Or(kind, "exclusive"), asked: e.At}
	case c == nil:
	case e.Step == End && asks && !c.held && e.Outcome == "granted":
		c.held, c.got, c.token = true, e.At, e.Token
	case e.Step == Lost:
		c.lost = true
	case e.Step == Begin && e.Call == "unlock", e.Step == End && e.Call == "do", e.Step == End && asks && !c.held:
		delete(l.calls, e.Key)
		if t.ended != nil && c.held {
			t.ended(l, e.Key, c, e.At)
		}
	}
}

// state shows a lane as one letter.
func (t *timeline) state(l *lane) (letter string) {
	letter = "·"
	for i, key := range t.keys {
		switch c := l.calls[key]; {
		case c == nil:
		case c.held && c.lost:
			return "!"
		case c.held:
			letter = string(rune('A' + i%26))
		case letter == "·":
			letter = string(rune('a' + i%26))
		}
	}
	return letter
}

// WriteTimeline writes the events of the world, a line for each event. A column of each
// goroutine shows which lock the goroutine wants or holds.
func (w *World) WriteTimeline(out io.Writer) error {
	b := bufio.NewWriter(out)
	events := w.Trace.Events()
	t := w.timeline(events)
	fmt.Fprintf(b, "seed %d\n", w.Seed)
	for i, l := range t.lanes {
		fmt.Fprintf(b, "column %d is goroutine %s\n", i+1, l.name)
	}
	for i, key := range t.keys {
		fmt.Fprintf(b, "%c waits for %s, %c holds %s\n", 'a'+i%26, key, 'A'+i%26, key)
	}
	fmt.Fprint(b, "! has lost a lock and found out\n\n")
	for _, e := range events {
		t.follow(e)
		fmt.Fprintf(b, "%15s  ", e.At)
		for _, l := range t.lanes {
			b.WriteString(t.state(l))
		}
		fmt.Fprintf(b, "  %s\n", e.text())
	}
	return b.Flush()
}

// WritePage writes the events of the world as a page for a browser.
func (w *World) WritePage(out io.Writer) error {
	events := w.Trace.Events()
	t := w.timeline(events)
	p := &page.Page{
		Program: "simulator", Title: fmt.Sprint("seed ", w.Seed), Keys: t.keys,
		Holds: []page.Hold{}, Faults: []page.Fault{}, Violations: []page.Violation{}, // no nulls
		Facts: []page.Fact{{Name: "events", Value: fmt.Sprint(len(events))}},
	}
	for _, process := range w.processes {
		p.Workers = append(p.Workers, "process "+process.Name)
	}
	t.ended = func(l *lane, key string, c *call, at time.Duration) {
		end := "unlocked"
		if c.lost {
			end = "lost"
		}
		p.Holds = append(p.Holds, page.Hold{
			Key: slices.Index(t.keys, key), Worker: l.process, Who: l.name, Mode: c.kind, Token: fmt.Sprint(c.token),
			Asked: ms(c.asked), From: ms(c.got), Until: ms(at), To: ms(at), End: end, Lost: c.lost,
		})
	}
	for _, e := range events {
		t.follow(e)
		p.End = ms(e.At)
		switch e.Step {
		case Fault:
			name := strings.TrimSpace(e.Call + " " + e.Outcome)
			p.Faults = append(p.Faults, page.Fault{Nemesis: name, Worker: t.process(e), From: ms(e.At), To: ms(e.At)})
		case Wrong:
			p.Violations = append(p.Violations, page.Violation{Check: e.Call, Key: slices.Index(t.keys, e.Key), At: ms(e.At), Text: e.Outcome})
			p.Verdict = cmp.Or(p.Verdict, e.Call+": "+e.Outcome)
		}
	}
	return p.Write(out)
}

// ms is a duration in the page's unit, milliseconds.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
