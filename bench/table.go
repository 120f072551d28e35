package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/figures"
	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/internal/publish"
)

// printResults prints the results of the sides in a bench.
func printResults(w io.Writer, b bench, st stores.Store, s scale, results []result) {
	fmt.Fprintf(w, "%s.\n\n", b.title(s))
	head := []string{"", b.times + " p50", "quartiles of the rounds", "× Holdfast"}
	if !b.timed {
		head = []string{"", "locks/s", "quartiles of the rounds", "× Holdfast", b.times + " p50"}
	}
	head = append(head, "p99", "longest")
	if b.contended() {
		head = append(head, "min/max")
	}
	if st.Cost != "" {
		head = append(head, st.Cost+"/lock")
	}
	if st.Cost != "" && b.waiting > 0 {
		head = append(head, "processor/lock")
	}
	publish.Head(w, head...)
	for _, r := range results {
		publish.Row(w, r.cells(b, st, results[0])...)
	}
	fmt.Fprintln(w)
	for _, r := range results {
		if r.side.Empty {
			continue // the empty side excludes nobody by design
		}
		for _, flaw := range []struct {
			n    int
			text string
		}{
			{r.tally.Hung, "waited for ten seconds after all others had stopped"},
			{r.tally.Lost, "could not be released"},
			{r.tally.Twice, "were granted while another held the key"},
		} {
			if flaw.n > 0 {
				fmt.Fprintf(w, "%s: of %d locks, %d %s.\n\n", r.side.Name, r.tally.Had, flaw.n, flaw.text)
			}
		}
	}
}

func (r result) cells(b bench, st stores.Store, reference result) []string {
	show := thousands
	if b.timed {
		show = func(seconds float64) string { return duration(time.Duration(seconds * float64(time.Second))) }
	}
	spread := figures.Quartiles(r.rounds)
	cells := []string{
		r.side.Name, show(spread.Median), show(spread.Low) + " – " + show(spread.High),
		known(figures.Ratio(r.rounds, reference.rounds), 3),
	}
	if !b.timed {
		cells = append(cells, duration(r.p50(b)))
	}
	cells = append(cells, duration(r.quantile(0.99)), duration(r.quantile(1)))
	if b.contended() {
		cells = append(cells, known(r.fairness(), 2))
	}
	if st.Cost != "" {
		cells = append(cells, significant(r.cost/float64(max(r.tally.Had, 1)), 3))
	}
	if st.Cost != "" && b.waiting > 0 {
		spent := "–" // unknown: servers that end meanwhile take their time along
		if r.cpu > 0 {
			spent = duration(r.cpu / time.Duration(max(r.tally.Had, 1)))
		}
		cells = append(cells, spent)
	}
	return cells
}

// p50 returns the median that the table shows.
func (r result) p50(b bench) time.Duration {
	if b.timed {
		return time.Duration(figures.Quartiles(r.rounds).Median * float64(time.Second))
	}
	return r.quantile(0.5)
}

// quantile returns a quantile of the times of all rounds.
func (r result) quantile(q float64) time.Duration { return figures.Quantile(r.tally.Times, q) }

// printHoldings prints the cost of holding locks.
func printHoldings(w io.Writer, s scale, st stores.Store, all []holding) {
	fmt.Fprintf(w, "%s.\n\n", s.title(st))
	head := []string{"", "lost", "bytes/lock", "goroutines", "% of a processor"}
	if st.Cost != "" {
		head = append(head, st.Cost+"/s")
	}
	publish.Head(w, head...)
	for _, h := range all {
		cells := []string{
			h.side.Name, strconv.Itoa(h.lost), thousands(h.memory), strconv.Itoa(h.goroutines), significant(100*h.cpu, 2),
		}
		if st.Cost != "" {
			cells = append(cells, significant(h.cost, 3))
		}
		publish.Row(w, cells...)
	}
	fmt.Fprintln(w)
}

// thousands shows a whole number.
func thousands(x float64) string { return publish.Thousands(int(math.Round(x))) }

// duration shows three digits of a duration.
func duration(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprint(d.Nanoseconds(), " ns")
	case d < time.Millisecond:
		return significant(float64(d)/float64(time.Microsecond), 3) + " µs"
	case d < time.Second:
		return significant(float64(d)/float64(time.Millisecond), 3) + " ms"
	default:
		return significant(d.Seconds(), 3) + " s"
	}
}

// known formats a number; a dash stands for NaN.
func known(x float64, digits int) string {
	if math.IsNaN(x) {
		return "–"
	}
	return significant(x, digits)
}

// significant formats a number with so many digits, and all digits before the point.
func significant(x float64, digits int) string {
	if x == 0 {
		return "0"
	}
	after := digits - 1 - int(math.Floor(math.Log10(math.Abs(x))))
	return strconv.FormatFloat(x, 'f', max(after, 0), 64)
}
