package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// record makes a tenure. The times are milliseconds.
func record(a driver.Ask, asked, from, until int, first, last uint64) tenure {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	return tenure{claim: a, born: at(asked), asked: at(asked), sent: at(asked), from: at(from), until: at(until), first: first, last: last}
}

// A client that is notified of a loss holds nothing from then on, also if the grant comes later.
func TestLossEndsATenure(t *testing.T) {
	e := &env{key: "key", harness: Harness{Bubble: true}}
	a, b := e.exclusive("a"), e.exclusive("b")
	for _, test := range []struct {
		name       string
		from, lost int
		wrong      bool
	}{
		{"before the other grant", 1, 3, false},
		{"before its own grant", 6, 3, false},
		{"after the other grant", 1, 5, true},
		{"before it was asked for", 1, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &workload{env: e, history: history{
				tenures: []tenure{record(a, 1, test.from, 8, 1, 1), record(b, 2, 4, 9, 2, 2)},
				lost:    map[string][]time.Time{a.ID: {time.UnixMilli(int64(test.lost))}},
			}}
			if err := w.sound(); (err != nil) != test.wrong {
				t.Errorf("found %v, want something: %v", err, test.wrong)
			}
		})
	}
}

func TestHistories(t *testing.T) {
	e := &env{key: "key", harness: Harness{Bubble: true}}
	a, b, r1, r2 := e.exclusive("a"), e.exclusive("b"), e.reader("r1"), e.reader("r2")
	s1, s2 := e.slot("s1", 2, 3), e.slot("s2", 2, 3)
	tests := []struct {
		name    string
		tenures []tenure
		wrong   bool
	}{
		{"one after the other", []tenure{record(a, 0, 1, 5, 1, 1), record(b, 2, 5, 9, 2, 2)}, false},
		{"both at once", []tenure{record(a, 0, 1, 5, 1, 1), record(b, 2, 4, 9, 2, 2)}, true},
		{"one within the other", []tenure{record(a, 0, 1, 9, 1, 1), record(b, 2, 4, 5, 2, 2)}, true},
		{"learnt of too late to rely on", []tenure{record(a, 0, 6, 5, 1, 1), record(b, 2, 4, 9, 2, 2)}, false},
		{"writer beside reader", []tenure{record(r1, 0, 1, 5, 1, 1), record(b, 2, 4, 9, 2, 2)}, true},
		{"reader beside writer", []tenure{record(a, 0, 1, 5, 1, 1), record(r1, 2, 4, 9, 2, 2)}, true},
		{"readers share", []tenure{record(r1, 0, 1, 5, 1, 1), record(r2, 2, 4, 9, 1, 1)}, false},
		{"slots too heavy", []tenure{record(s1, 0, 1, 5, 1, 1), record(s2, 2, 4, 9, 2, 2)}, true},

		{"same token", []tenure{record(a, 0, 1, 2, 7, 7), record(b, 3, 4, 5, 7, 7)}, true},
		{"smaller token", []tenure{record(a, 0, 1, 2, 7, 7), record(b, 3, 4, 5, 6, 6)}, true},
		{"token within a span", []tenure{record(a, 0, 1, 2, 7, 16), record(b, 3, 4, 5, 9, 9)}, true},
		{"last token of a span", []tenure{record(a, 0, 1, 2, 7, 16), record(b, 3, 4, 5, 16, 17)}, true},
		{"next token after a span", []tenure{record(a, 0, 1, 2, 7, 16), record(b, 3, 4, 5, 17, 17)}, false},
		{"learnt of in another order than granted", []tenure{record(b, 0, 9, 10, 6, 6), record(a, 1, 2, 3, 7, 7)}, false},
		{"reader with the token of a writer", []tenure{record(a, 0, 1, 2, 7, 7), record(r1, 3, 4, 5, 7, 7)}, true},
		{"reader with an old phase's token", []tenure{
			record(r1, 0, 1, 2, 7, 7), record(a, 3, 4, 5, 8, 8), record(r2, 6, 7, 8, 7, 7),
		}, true},
		{"reader with a smaller token", []tenure{record(r1, 0, 1, 2, 7, 7), record(r2, 3, 4, 5, 6, 6)}, true},
		{"reader with a new phase's token", []tenure{
			record(r1, 0, 1, 2, 7, 7), record(a, 3, 4, 5, 8, 8), record(r2, 6, 7, 8, 9, 9),
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := &workload{env: e, history: history{tenures: test.tenures}}
			if err := w.sound(); (err != nil) != test.wrong {
				t.Errorf("found %v, want something: %v", err, test.wrong)
			}
		})
	}
}

func TestPassed(t *testing.T) {
	e := &env{key: "key"}
	line := func(a driver.Ask, born, lined, asked, from int) tenure {
		tn := record(waiting(a), asked, from, from+1, 1, 1)
		tn.born, tn.lined = time.UnixMilli(int64(born)), time.UnixMilli(int64(lined))
		return tn
	}
	token := func(n uint64, tn tenure) tenure {
		tn.first, tn.last = n, n
		return tn
	}
	first := line(e.exclusive("first"), 0, 1, 20, 21)
	lapsed := first
	lapsed.gap = time.Hour
	slow := first
	slow.slowest = time.Second
	newer := token(7, first)
	silent := newer
	silent.from = silent.from.Add(time.Hour)
	for name, test := range map[string]struct {
		first, second tenure
		wrong, late   bool
	}{
		"behind":              {first, line(e.exclusive("second"), 2, 3, 30, 31), false, false},
		"passed":              {first, line(e.exclusive("second"), 2, 3, 9, 10), true, false},
		"passed in doubt":     {slow, line(e.exclusive("second"), 2, 3, 9, 10), true, true},
		"came before":         {first, line(e.exclusive("second"), 0, 3, 9, 10), false, false},
		"has a smaller token": {newer, line(e.exclusive("second"), 2, 3, 20, 22), true, false},
		"has the same token":  {newer, token(7, line(e.exclusive("second"), 2, 3, 20, 22)), false, false},
		"was long silent":     {silent, line(e.exclusive("second"), 2, 3, 20, 22), false, false},
		"had lost its place":  {lapsed, line(e.exclusive("second"), 2, 3, 9, 10), false, false},
	} {
		err := passed([]tenure{test.first, test.second})
		if (err != nil) != test.wrong || errors.As(err, new(doubt)) != test.late {
			t.Errorf("%s: found %v, want something: %v, in doubt: %v", name, err, test.wrong, test.late)
		}
	}
}

func TestSlept(t *testing.T) {
	e := &env{key: "key"}
	found := record(e.exclusive("a"), 0, 100, 200, 1, 1)
	found.found = true
	woken := found
	woken.found = false
	for name, test := range map[string]struct {
		tenure tenure
		freed  int
		wrong  bool
	}{
		"woken":                     {woken, 50, false},
		"found long after":          {found, 50, true},
		"found at the same instant": {found, 100, false},
	} {
		h := &history{tenures: []tenure{test.tenure}, freed: map[string][]time.Time{"key": {time.UnixMilli(int64(test.freed))}}}
		if err := h.slept(); (err != nil) != test.wrong {
			t.Errorf("%s: found %v, want something: %v", name, err, test.wrong)
		}
	}
}

// A silent store answers no Acquire before a time.
type silent struct {
	clerk
	until time.Time
}

func (s silent) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	select {
	case <-time.After(time.Until(s.until)):
		return s.clerk.Acquire(ctx, a)
	case <-ctx.Done():
		return driver.Grant{}, ctx.Err()
	}
}

// logged is a test that keeps its log.
type logged struct {
	testing.TB
	log string
}

func (l *logged) Log(args ...any)  { l.log += fmt.Sprintln(args...) }
func (l *logged) Skip(args ...any) { l.Log(args...) }

// A workload goes on while a store grants too little. If too little is granted in the end,
// the machine may be slow, but a bubble is never slow.
func TestFewGrants(t *testing.T) {
	for name, test := range map[string]struct {
		silent   time.Duration
		bubble   bool
		unproved bool
		fails    bool
	}{
		"silent for a while":         {silent: 3 * patience},
		"always silent":              {silent: time.Hour, unproved: true},
		"always silent, in a bubble": {silent: time.Hour, bubble: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways, until := right(), time.Now().Add(test.silent)
				ways.wrap = func(c clerk) driver.Store { return silent{c, until} }
				h, tb := ledgers(ways), &logged{TB: t}
				h.Bubble = test.bubble
				err := attempt(tb, h, new(tries), func(e *env) {
					w := &workload{env: e, crashes: true, keys: []string{"a", "b", "c"}}
					w.run(1)
				})
				if (err != nil) != test.fails {
					t.Errorf("failed with %v, want a failure: %v", err, test.fails)
				}
				if strings.Contains(tb.log, "not proved") != test.unproved {
					t.Errorf("logged %q, want that nothing is proved: %v", tb.log, test.unproved)
				}
			})
		})
	}
}
