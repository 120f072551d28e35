package main

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/holdfast-go/holdfast/ext/bench/internal/chart"
	"github.com/holdfast-go/holdfast/ext/bench/internal/figures"
	"github.com/holdfast-go/holdfast/ext/bench/internal/stores"
)

// drawn are the benches that the picture shows, each in a panel. What vies for one key
// has further figures beside it.
var (
	drawn = []string{"alone", "hand-off", "one-key"}
	facts = []string{"one-key", "one-each"}
)

func newPicture() *chart.Chart {
	return &chart.Chart{
		Title: "How long a lock takes",
		Subtitle: fmt.Sprintf("Dot and number: median. Bar: up to the 99th percentile. Further left is better; the axes are "+
			"logarithmic. One machine with %d processors.", runtime.NumCPU()),
		Legend: [3]string{"Holdfast", "library", "by hand"},
		Panels: []string{"alone: lock and unlock", "hand-off to another process", "32 on one key: wait"},
		Facts:  []string{"32: locks/s", "min/max", "4: locks/s", "min/max"},
		Note: "32: goroutines in 4 processes, in which Holdfast hands a lock from goroutine to goroutine. " +
			"4: one goroutine in each process, so that every lock comes from the store.",
	}
}

// paint puts what the sides have got from a bench into the picture.
func paint(c *chart.Chart, b bench, st stores.Store, results []result) {
	panel, fact := slices.Index(drawn, b.name), slices.Index(facts, b.name)
	if panel < 0 && fact < 0 {
		return
	}
	if n := len(c.Groups); n == 0 || c.Groups[n-1].Title != st.Title {
		g := chart.Group{Title: st.Title}
		for _, s := range st.Sides {
			if !s.Empty {
				g.Rows = append(g.Rows, chart.Row{
					Name: s.Name, Tone: int(s.Kind), Bars: make([]chart.Bar, len(drawn)), Facts: make([]string, len(c.Facts)),
				})
			}
		}
		c.Groups = append(c.Groups, g)
	}
	rows := c.Groups[len(c.Groups)-1].Rows
	for _, r := range results {
		at := slices.IndexFunc(rows, func(row chart.Row) bool { return row.Name == r.side.Name })
		if at < 0 {
			continue
		}
		if panel >= 0 {
			p50 := r.p50(b)
			rows[at].Bars[panel] = chart.Bar{P50: p50, P99: r.quantile(0.99), Label: duration(p50)}
		}
		if fact >= 0 {
			rows[at].Facts[2*fact] = thousands(figures.Quartiles(r.rounds).Median)
			rows[at].Facts[2*fact+1] = known(r.fairness(), 2)
		}
	}
}
