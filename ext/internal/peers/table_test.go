//go:build unix

package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// A table has a row for each side, ours first.
type table struct {
	sides []side
	names []string
	rows  [][]float64
}

func newTable(sides []side, names ...string) *table { return &table{sides: sides, names: names} }

func (t *table) add(values ...float64) { t.rows = append(t.rows, values) }

func (t *table) column(name string) (ours float64, theirs []float64) {
	at := slices.Index(t.names, name)
	for _, row := range t.rows[1:] {
		theirs = append(theirs, row[at])
	}
	return t.rows[0][at], theirs
}

// without returns the table without some of the sides.
func (t *table) without(out func(side) bool) *table {
	rest := &table{names: t.names}
	for i, s := range t.sides {
		if !out(s) {
			rest.sides, rest.rows = append(rest.sides, s), append(rest.rows, t.rows[i])
		}
	}
	return rest
}

// most is how many times the best of theirs we reach, of what is better the
// more it is.
func (t *table) most(name string) float64 {
	ours, theirs := t.column(name)
	return ours / slices.Max(theirs)
}

// least is most of what is better the less it is.
func (t *table) least(name string) float64 {
	ours, theirs := t.column(name)
	return ours / slices.Min(theirs)
}

// report reports some columns of ours.
func (t *table) report(b *testing.B, names ...string) {
	for _, name := range names {
		ours, _ := t.column(name)
		b.ReportMetric(ours, name)
	}
}

// log shows the table. It has no more than the ten lines that go test shows of a
// benchmark.
func (t *table) log(b *testing.B) {
	w := tabwriter.NewWriter(b.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\t\n", strings.Join(t.names, "\t"))
	for i, row := range t.rows {
		fmt.Fprintf(w, "%s\t", t.sides[i].name)
		for _, value := range row {
			format := "%.0f\t"
			if value < 100 {
				format = "%.3g\t"
			}
			fmt.Fprintf(w, format, value)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
}

// turns lets each of n run once a round. Another begins each round, so that
// none always comes after the same one.
func turns(rounds, n int, run func(i int)) {
	for round := range rounds {
		for i := range n {
			run((round + i) % n)
		}
	}
}

// quantile returns what a share q of all is not above. It sorts.
func quantile(all []time.Duration, q float64) time.Duration {
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))]
}

func mean(all []time.Duration) time.Duration { return sum(all) / time.Duration(len(all)) }

func sum[T int | time.Duration](all []T) (total T) {
	for _, n := range all {
		total += n
	}
	return total
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
