package check

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
)

// A slot that has run out is as good as any while there is room for one more. When
// there is not, who has it is to be told.
func TestLostSlot(t *testing.T) {
	for name, test := range map[string]struct {
		others   int   // who have slots, of three
		unlocked int64 // when they give them back
		told     int64 // when the loss of another is told, which has run out at 1001
		want     []Promise
	}{
		"no room":                  {2, 2500, 1800, []Promise{Told}},
		"no room for a moment":     {2, 1150, 1800, []Promise{Told}},
		"no room, and soon told":   {2, 2500, 1300, nil},
		"no room, and told before": {2, 2500, 1050, nil},
		"room by then":             {2, 1050, 1800, nil},
		"room":                     {1, 2500, 1800, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s story
			s.terms(1, 1, 0, 1, 1001, 0, 5, 1, 3)
			s.add(1, test.told, history.Event{Kind: history.Lost})
			for n := range test.others {
				s.terms(2+n, 1, 0, 10, 3000, test.unlocked, uint64(6+n), 1, 3)
			}
			s.terms(5, 1, 1000, 1100, 3000, 2500, 9, 1, 3)
			s.wants(t, test.want...)
		})
	}
}

// A process that has not run gives back a slot before it has written down that this was
// lost, and goes by it no more.
func TestLostSlotIsGivenBack(t *testing.T) {
	for held, want := range map[int64][]Promise{900: nil, 1150: {Told}} {
		var s story
		s.terms(1, 1, 0, 1, 1001, 0, 5, 1, 3)
		s.add(1, held, history.Event{Kind: history.Held, Until: 1001})
		s.add(1, 1801, history.Event{Kind: history.Unlocked})
		s.add(1, 1802, history.Event{Kind: history.Stall, Since: 1160})
		s.add(1, 1803, history.Event{Kind: history.Freed})
		s.add(1, 1900, history.Event{Kind: history.Bye})
		for n := range 2 {
			s.terms(2+n, 1, 0, 10, 3000, 2500, uint64(6+n), 1, 3)
		}
		s.terms(5, 1, 1000, 1100, 3000, 2500, 9, 1, 3)
		s.wants(t, want...)
	}
}

// Of several slots that were lost at once, each one is to be told of, and nothing is
// held against the store twice.
func TestLostSlots(t *testing.T) {
	var s story
	for n := range 3 {
		s.terms(n, 1, 0, 1, 1001, 0, uint64(5+n), 1, 3)
		s.add(n, 1400+int64(n)*300, history.Event{Kind: history.Lost})
	}
	s.terms(5, 1, 1000, 1100, 3000, 1150, 9, 3, 3)
	s.terms(5, 2, 1000, 1200, 3000, 2500, 10, 3, 3)
	all := Of(s.events).Losses()
	if len(all) != 1 || !strings.HasPrefix(all[0].Text, "one of worker 1.1/1,  with token 6 and worker 2.1/1,  with token 7 was not told of its loss until 600ms after worker 5.1/1") {
		t.Errorf("%+v", all)
	}
}
