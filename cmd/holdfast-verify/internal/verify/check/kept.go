package check

import (
	"fmt"
	"slices"
	"time"
)

// Kept checks [Kept]: no lock is lost that its process could have renewed. A process could
// have renewed a lock if nothing was wrong with the process or the servers for half of the
// TTL before. A busy machine may need some time for a renewal. So with a TTL of less than
// twice slack, Kept checks nothing.
func (r *Run) Kept(ttl, slack time.Duration) (all []Violation) {
	calm := int64(ttl / 2)
	if calm < int64(slack) {
		return nil
	}
	for _, h := range r.Holds {
		if h.Got == Never || h.Late || h.Lost == Never {
			continue
		}
		before := Span{h.Lost - calm, h.Lost}
		harmed := slices.ContainsFunc(r.Faults, func(f Fault) bool {
			return f.Overlaps(before) && (f.Worker < 0 || f.Worker == h.Who.Worker)
		})
		if !harmed && r.stalled(h.Who, before) < calm/4 {
			all = append(all, Violation{Check: Kept, Key: h.Key, At: h.Lost, Text: fmt.Sprintf(
				"%s was lost though nothing had been wrong for %v: %s", h, time.Duration(calm), h.Note)})
		}
	}
	return all
}
