package chart

import (
	"fmt"
	"math"
	"time"
)

// A scale is a logarithmic axis between two powers of ten.
type scale struct{ low, high int } // of a nanosecond

// scale returns the axis that fits all bars of a panel.
func (c Chart) scale(i int) scale {
	least, most := time.Duration(math.MaxInt64), time.Duration(0)
	for _, g := range c.Groups {
		for _, r := range g.Rows {
			if i < len(r.Bars) && r.Bars[i].P50 > 0 {
				least = min(least, r.Bars[i].P50)
				most = max(most, r.Bars[i].P50, r.Bars[i].P99)
			}
		}
	}
	if most == 0 {
		return scale{3, 6}
	}
	s := scale{int(math.Floor(math.Log10(float64(least)))), int(math.Ceil(math.Log10(float64(most))))}
	s.high = max(s.high, s.low+1)
	return s
}

// place returns the distance of a duration from the left end of the panel.
func (s scale) place(d time.Duration) float64 {
	return panel * (math.Log10(float64(d)) - float64(s.low)) / float64(s.high-s.low)
}

// decades returns the powers of ten.
func (s scale) decades() (all []time.Duration) {
	for power := s.low; power <= s.high; power++ {
		all = append(all, time.Duration(math.Round(math.Pow10(power))))
	}
	return all
}

// brief shows a power of ten.
func brief(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprint(int(d/time.Nanosecond), " ns")
	case d < time.Millisecond:
		return fmt.Sprint(int(d/time.Microsecond), " µs")
	case d < time.Second:
		return fmt.Sprint(int(d/time.Millisecond), " ms")
	default:
		return fmt.Sprint(int(d/time.Second), " s")
	}
}
