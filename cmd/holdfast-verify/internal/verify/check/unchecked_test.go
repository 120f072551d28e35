package check

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
)

// A check that has nothing to look at says so.
func TestUnchecked(t *testing.T) {
	const slack = 10 * time.Second
	var empty, try, full story
	try.add(1, 0, history.Event{Kind: history.Asked, Mode: "try", Weight: 1, Limit: 1})
	try.add(1, 1, history.Event{Kind: history.Got, Token: 5})

	full.add(1, 0, history.Event{Kind: history.Asked, Mode: "exclusive", Weight: 1, Limit: 1})
	full.add(1, 1, history.Event{Kind: history.Got, Token: 5})
	full.add(1, 2, history.Event{Kind: history.Writes, Token: 5, Value: 1})
	full.add(1, 3, history.Event{Kind: history.Wrote, Token: 5, Value: 1})
	full.add(1, 4, history.Event{Kind: history.Result, Value: 1})
	brief := full
	full.add(1, 4, history.Event{Kind: history.Asked, Key: "other", Op: 2, Weight: 1, Limit: 1}) // what has been let go of
	full.add(1, 5, history.Event{Kind: history.Got, Token: 6, Op: 2})
	full.add(1, 6, history.Event{Kind: history.Freed, Op: 2})
	full.add(2, 7, history.Event{Kind: history.Asked, Key: "other", Op: 1, Weight: 1, Limit: 1})
	alone := full
	alone.events = slices.Clone(full.events)
	full.add(2, 8, history.Event{Kind: history.Asked, Op: 2, Weight: 1, Limit: 1})
	alone.add(1, 12_000, history.Event{Kind: history.Held, Until: 30_000})
	full.add(1, 12_000, history.Event{Kind: history.Held, Until: 30_000})
	for name, test := range map[string]struct {
		story *story
		ttl   time.Duration
		waits Waits
		want  []Promise
	}{
		"nothing at all":      {&empty, 20 * time.Second, Waits{}, []Promise{Exclusive, Fenced, Growing, Kept, Lively, Single}},
		"nobody waits":        {&try, 20 * time.Second, Waits{}, []Promise{Exclusive, Fenced, Kept, Lively, Single}},
		"nothing is renewed":  {&brief, 20 * time.Second, Waits{9, 9}, []Promise{Exclusive, Kept}},
		"nobody else asks":    {&alone, 20 * time.Second, Waits{9, 9}, []Promise{Exclusive}},
		"the TTL is short":    {&full, 2 * time.Second, Waits{9, 9}, []Promise{Kept}},
		"a bit of everything": {&full, 20 * time.Second, Waits{9, 9}, nil},
		"all are excused":     {&full, 20 * time.Second, Waits{9, 0}, []Promise{Lively}},
	} {
		got := slices.Sorted(maps.Keys(Of(test.story.events).Unchecked(test.ttl, slack, test.waits, time.Millisecond/2)))
		slices.Sort(test.want)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v are not checked, want %v", name, got, test.want)
		}
	}
}
