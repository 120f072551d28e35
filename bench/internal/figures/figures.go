// Package figures has the arithmetic of benchmarks.
package figures

import (
	"math"
	"slices"
)

// A Number is a type that can be summed up.
type Number interface{ ~int | ~int64 | ~float64 }

// Quantile returns the value below which a share q of all lies, interpolated between two
// values. q is from 0 to 1. The quantile of nothing is 0. Quantile sorts all.
func Quantile[N Number](all []N, q float64) N {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	at := q * float64(len(all)-1)
	low := int(at)
	high := min(low+1, len(all)-1)
	return all[low] + N((at-float64(low))*float64(all[high]-all[low]))
}

// A Spread is a summary of the rounds of a benchmark.
type Spread struct{ Low, Median, High float64 } // the quartiles

// Quartiles returns the spread of rounds, and keeps their order.
func Quartiles(rounds []float64) Spread {
	all := slices.Clone(rounds)
	return Spread{Quantile(all, 0.25), Quantile(all, 0.5), Quantile(all, 0.75)}
}

// Ratio returns the median of the ratios between the rounds of two sides. The sides have
// taken turns: a load that slowed a round of one side has slowed the round of the
// reference, too.
func Ratio(rounds, reference []float64) float64 {
	var all []float64
	for i := range min(len(rounds), len(reference)) {
		if reference[i] != 0 {
			all = append(all, rounds[i]/reference[i])
		}
	}
	if len(all) == 0 {
		return math.NaN()
	}
	return Quantile(all, 0.5)
}

// Fairness returns the smallest count divided by the largest, from 0 to 1. Fairness is 1
// if all counts are 0.
func Fairness(counts []int) float64 {
	if len(counts) == 0 || slices.Max(counts) == 0 {
		return 1
	}
	return float64(slices.Min(counts)) / float64(slices.Max(counts))
}

// Sum returns the sum of all.
func Sum[N Number](all []N) (total N) {
	for _, n := range all {
		total += n
	}
	return total
}
