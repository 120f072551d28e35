package main

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/holdfast-go/holdfast/ext/bench/internal/chart"
	"github.com/holdfast-go/holdfast/ext/bench/internal/figures"
	"github.com/holdfast-go/holdfast/ext/bench/internal/stores"
)

// drawn are the benches that the picture shows, each in a panel.
var drawn = []string{"alone", "hand-off", "one-key"}

func newPicture() *chart.Chart {
	return &chart.Chart{
		Title: "How long a lock takes",
		Subtitle: fmt.Sprintf("Dot and number: median. Bar: up to the 99th percentile. Further left is better; the axes are "+
			"logarithmic. One machine with %d processors.", runtime.NumCPU()),
		Legend: [3]string{"Holdfast", "library", "by hand"},
		Panels: []string{"alone: lock and unlock", "hand-off to another process", "32 on one key: wait"},
		Facts:  []string{"locks/s", "min/max"},
	}
}

// paint puts what the sides have got from a bench into the picture.
func paint(c *chart.Chart, b bench, st stores.Store, results []result) {
	panel := slices.Index(drawn, b.name)
	if panel < 0 {
		return
	}
	if n := len(c.Groups); n == 0 || c.Groups[n-1].Title != st.Title {
		g := chart.Group{Title: st.Title}
		for _, s := range st.Sides {
			g.Rows = append(g.Rows, chart.Row{Name: s.Name, Tone: int(s.Kind), Bars: make([]chart.Bar, len(drawn))})
		}
		c.Groups = append(c.Groups, g)
	}
	rows := c.Groups[len(c.Groups)-1].Rows
	for i, r := range results {
		p50 := r.p50(b)
		rows[i].Bars[panel] = chart.Bar{P50: p50, P99: r.quantile(0.99), Label: duration(p50)}
		if b.contended() {
			rate := figures.Quartiles(r.rounds).Median
			rows[i].Facts = []string{thousands(rate), significant(figures.Fairness(r.tally.Counts), 2)}
		}
	}
}
