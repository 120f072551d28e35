package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

var lives = []life{fresh, unanswered, queued, granted, pushed, brief, held, reported, over}

// A claim has one life: the table says where each event leads from each state.
func TestLife(t *testing.T) {
	grant := driver.Grant{OK: true, TTL: time.Minute}
	answer := func(wait bool, g driver.Grant, err error) func(*lease) {
		return func(l *lease) { l.noteAnswer(1, wait, g, err) }
	}
	events := []struct {
		name string
		do   func(*lease)
		to   map[life]life // a state that is missing stays
	}{
		{"a request is granted", answer(false, grant, nil),
			map[life]life{fresh: granted, unanswered: granted, queued: granted, pushed: granted}},
		{"a waiting request is refused", answer(true, driver.Grant{}, nil),
			map[life]life{fresh: queued, unanswered: queued, granted: queued, pushed: queued}},
		{"a single try is refused", answer(false, driver.Grant{}, nil),
			map[life]life{unanswered: fresh, queued: fresh, granted: fresh, pushed: fresh}},
		{"a request is not answered", answer(true, driver.Grant{}, errors.New("reset")),
			map[life]life{fresh: unanswered, queued: unanswered, granted: unanswered, pushed: unanswered}},
		{"a request was never written", answer(true, driver.Grant{}, driver.ErrUnwritten), nil},
		{"a claim is admitted", func(l *lease) { new(turn).admit(l) },
			map[life]life{granted: held, pushed: brief}},
		{"a renewal succeeds", func(l *lease) { l.confirm(1) }, map[life]life{brief: held}},
		{"the store reports the loss of a held claim", func(l *lease) {
			(&turn{leases: []*lease{l}}).noteLoss(l.claim().ID, driver.ErrLost)
		}, map[life]life{brief: reported, held: reported}},
		{"a held claim ends", func(l *lease) { (&turn{leases: []*lease{l}}).dismiss(l) },
			map[life]life{fresh: over, unanswered: over, queued: over, granted: over, pushed: over, brief: over, held: over, reported: over}},
	}
	for _, e := range events {
		for _, from := range lives {
			want, moves := e.to[from]
			if !moves {
				want = from
			}
			l := &lease{life: from}
			if e.do(l); l.life != want {
				t.Errorf("%s: life %d goes to %d, want %d", e.name, from, l.life, want)
			}
		}
	}
}

// Nothing leads back from a held claim to a requested one, or away from the end.
func TestMoves(t *testing.T) {
	for _, from := range lives {
		for _, to := range lives {
			l := &lease{life: from}
			moved := l.move(to)
			if moved != slices.Contains(moves[from], to) || moved != (l.life == to && from != to) {
				t.Errorf("move from %d to %d: %v, now %d", from, to, moved, l.life)
			}
			if moved && (from >= brief && to < brief || from == over) {
				t.Errorf("a claim goes back from %d to %d", from, to)
			}
		}
	}
}

// errGranted stands for a grant among the answers of TestKnown.
var errGranted = errors.New("granted")

// A claim is released when the store may know it, and with Late when a request may still
// arrive.
func TestKnown(t *testing.T) {
	lost := errors.New("reset")
	for _, test := range []struct {
		answers     []error // nil: refused
		wait        bool
		known, late bool
	}{
		{nil, false, false, false},
		{[]error{nil}, false, false, false},
		{[]error{nil}, true, true, false},
		{[]error{errGranted, nil}, false, false, false}, // refused since, so the grant has ended
		{[]error{lost}, false, true, true},
		{[]error{lost, nil}, false, true, true}, // the first request may arrive yet
		{[]error{driver.ErrUnwritten}, true, false, false},
		{[]error{fmt.Errorf("%w: %w", driver.ErrUnwritten, context.Canceled), nil}, false, false, false},
	} {
		var l lease
		for _, err := range test.answers {
			if err == errGranted {
				l.noteAnswer(1, test.wait, driver.Grant{OK: true}, nil)
				continue
			}
			l.noteAnswer(1, test.wait, driver.Grant{}, err)
		}
		if l.known() != test.known || l.release[0].Late != test.late {
			t.Errorf("%v, wait %v: known %v, late %v", test.answers, test.wait, l.known(), l.release[0].Late)
		}
	}
}

func TestBondsThatEndFirstAreForgotten(t *testing.T) {
	var bs bonds
	made := func() (*Bond, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(t.Context())
		return &Bond{Context: ctx, Cancel: cancel, Cause: ErrReleased}, func() { cancel(nil) }
	}
	live, _ := made()
	bs.add(live)
	for range 1000 {
		b, cancel := made()
		bs.add(b)
		cancel()
	}
	if bs.count > 4 {
		t.Errorf("%d contexts are kept", bs.count)
	}
	bs.forgetEnded()
	if bs.count != 1 || bs.last != live {
		t.Errorf("%d contexts are kept, want the one that lives", bs.count)
	}
	if bs.end(); context.Cause(live) != ErrReleased {
		t.Errorf("the cause is %v", context.Cause(live))
	}
}
