package check

import (
	"cmp"
	"fmt"
	"slices"
)

// Once checks [Single]: every caller of an effect gets the same result, and no owner begins
// the effect after a caller has the result.
func (r *Run) Once() (all []Violation) {
	effects := byKey(r.Effects, func(e Effect) string { return e.Key })
	for key, results := range byKey(r.Results, func(e Effect) string { return e.Key }) {
		slices.SortFunc(results, func(a, b Effect) int { return cmp.Compare(a.At, b.At) })
		first := results[0]
		for _, other := range results[1:] {
			if other.Value != first.Value {
				all = append(all, Violation{Check: Single, Key: key, At: other.At, Reach: first.At, Text: fmt.Sprintf(
					"%s returned a different result than %s before", other.Who, first.Who)})
			}
		}
		for _, e := range effects[key] {
			if e.At > first.At {
				all = append(all, Violation{Check: Single, Key: key, At: e.At, Text: fmt.Sprintf(
					"%s has begun the effect with token %d after %s had got its result", e.Who, e.Token, first.Who)})
			}
		}
	}
	return all
}
