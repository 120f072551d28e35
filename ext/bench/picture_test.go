package main

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/bench/internal/stores"
	"github.com/holdfast-go/holdfast/ext/bench/internal/worker"
)

// TestPaint has a side that is not in all benches, and one that locks nothing.
func TestPaint(t *testing.T) {
	ours, patient, empty := stores.Side{Name: "ours"}, stores.Side{Name: "patient"}, stores.Side{Name: "none", Empty: true}
	st := stores.Store{Title: "Store", Sides: []stores.Side{ours, empty, patient}}
	c := newPicture()
	for i, b := range benches {
		if b.name == "late-hand-off" || b.name == "distinct-keys" {
			continue
		}
		var all []result
		for n, side := range st.Sides {
			if side.Name == "patient" && !b.waits() {
				continue
			}
			r := result{side: side}
			tally := worker.Tally{Counts: []int{100 * (i + 1), 50 * (i + 1)}, Times: []time.Duration{time.Duration(10*i + n + 1)}}
			r.add(b, tally, 0, scale{each: time.Second})
			all = append(all, r)
		}
		paint(c, b, st, all)
	}
	if len(c.Groups) != 1 || len(c.Groups[0].Rows) != 2 {
		t.Fatalf("painted %v, want one store with two sides", c.Groups)
	}
	us, them := c.Groups[0].Rows[0], c.Groups[0].Rows[1]
	if us.Bars[0].P50 != 1 || us.Bars[1].P50 != 11 || us.Bars[2].P50 != 31 {
		t.Errorf("bars of ours: %v", us.Bars)
	}
	if them.Bars[0].P50 != 0 || them.Bars[1].P50 != 13 || them.Bars[2].P50 != 33 {
		t.Errorf("bars of the patient side: %v", them.Bars)
	}
	if want := []string{"600", "0.50", "750", "0.50"}; !slices.Equal(us.Facts, want) || !slices.Equal(them.Facts, want) {
		t.Errorf("facts: %q and %q, want %q", us.Facts, them.Facts, want)
	}
}
