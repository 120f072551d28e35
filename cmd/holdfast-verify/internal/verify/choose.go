package verify

import (
	"cmp"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
)

// choose returns most locks, as many as can be shown. Half of the locks are nearest to
// violations, the rest nearest to faults.
func choose(holds []*check.Hold, wrong []check.Violation, faults []check.Fault, most int) []*check.Hold {
	var moments, begins []int64
	for _, v := range wrong {
		if v.At != 0 {
			moments = append(moments, v.At)
		}
	}
	for _, f := range faults {
		begins = append(begins, f.From)
	}
	holds = slices.Clone(holds)
	chosen := 0
	if len(moments) > 0 {
		byDistance(holds, moments)
		chosen = most / 2
	}
	byDistance(holds[chosen:], begins)
	return holds[:most]
}

// byDistance sorts locks by the distance from the nearest moment. Without moments the locks
// are in order of time.
func byDistance(holds []*check.Hold, moments []int64) {
	slices.Sort(moments)
	distance := make(map[*check.Hold]int64, len(holds))
	for _, h := range holds {
		end, _ := ended(h)
		next, _ := slices.BinarySearch(moments, h.Got)
		d := int64(check.Never)
		if next < len(moments) {
			d = max(0, moments[next]-end)
		}
		if next > 0 {
			d = min(d, h.Got-moments[next-1])
		}
		distance[h] = d
	}
	slices.SortFunc(holds, func(a, b *check.Hold) int {
		return cmp.Or(cmp.Compare(distance[a], distance[b]), cmp.Compare(a.Got, b.Got))
	})
}
