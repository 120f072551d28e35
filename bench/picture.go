package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/chart"
	"github.com/holdfast-go/holdfast/bench/internal/stores"
)

// drawn are the benches that the pictures show, one bench a panel. The benches in which
// goroutines contend for one key also have figures beside the panels.
var (
	drawn = []string{"alone", "hand-off", "one-key"}
	facts = []string{"one-key", "one-each"}
)

// The small picture has a handful of rows of one store.
var (
	smallStore = "Redis"
	smallRows  = []string{"Holdfast", "rueidislock", "redsync on go-redis, 1 ms", "bsm/redislock, 1 ms", "SET NX on go-redis, 1 ms"}
)

// A saved table is a table written by printResults.
type saved struct {
	store stores.Store
	bench bench
	rows  []map[string]string // by the heads of the columns
}

// cell returns the cell of the column whose head ends with word.
func cell(row map[string]string, word string) string {
	for head, text := range row {
		if head == word || strings.HasSuffix(head, " "+word) {
			return text
		}
	}
	return ""
}

// readTables returns the tables that a picture shows.
func readTables(text string) (all []saved) {
	var store stores.Store
	var now *saved
	var heads []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		title, isStore := strings.CutPrefix(line, "### ")
		name, _, isTitle := strings.Cut(line, ": ")
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		switch {
		case isStore:
			at := slices.IndexFunc(stores.All(), func(st stores.Store) bool { return st.Title == title })
			store, now = stores.Store{}, nil
			if at >= 0 {
				store = stores.All()[at]
			}
		case !strings.HasPrefix(line, "|"):
			at := slices.IndexFunc(benches, func(b bench) bool { return strings.HasPrefix(b.title(full), name+": ") })
			if isTitle && at >= 0 {
				all = append(all, saved{store: store, bench: benches[at]})
				now, heads = &all[len(all)-1], nil
			} else if line != "" {
				now = nil
			}
		case now != nil && heads == nil:
			heads = cells
		case now != nil && !strings.HasPrefix(line, "|---"):
			row := make(map[string]string)
			for i, c := range cells[:min(len(cells), len(heads))] {
				row[strings.TrimSpace(heads[i])] = strings.TrimSpace(c)
			}
			now.rows = append(now.rows, row)
		}
	}
	return all
}

// pictures draws the tables: a picture of all stores, and a small picture. The small
// picture is empty if the tables have nothing of its store.
func pictures(text string) (whole, small chart.Chart) {
	processors := cmp.Or(regexp.MustCompile(`\d+ processors?\b`).FindString(text), "few processors")
	whole = chart.Chart{
		Title: "How long a lock takes",
		Subtitle: fmt.Sprintf("Dot and number: median. Bar: up to the 99th percentile. Further left is better; the axes are "+
			"logarithmic. One machine with %s.", processors),
		Legend: [3]string{"Holdfast", "library", "by hand"},
		Panels: []string{"alone: lock and unlock", "hand-off to another process", "32 on one key: wait"},
		Facts:  []string{"32: locks/s", "min/max", "4: locks/s", "min/max"},
		Note: "32: goroutines in 4 processes, in which Holdfast hands a lock from goroutine to goroutine. " +
			"4: one goroutine in each process.",
	}
	for _, table := range readTables(text) {
		paint(&whole, table)
	}
	for i, g := range whole.Groups {
		whole.Groups[i].Rows = slices.DeleteFunc(g.Rows, blank)
	}
	small = whole
	small.Title = "How long a lock takes in " + smallStore
	small.Facts = whole.Facts[:2]
	small.Note = "32 goroutines in 4 processes. min/max: the locks of the goroutine with the fewest, divided by those of the " +
		"goroutine with the most; 1 is fair."
	small.Groups = nil
	for _, g := range whole.Groups {
		if g.Title == smallStore {
			small.Groups = []chart.Group{{Rows: pick(g.Rows)}}
		}
	}
	return whole, small
}

// blank reports whether no table that is drawn has the row.
func blank(r chart.Row) bool {
	return !slices.ContainsFunc(r.Bars, func(b chart.Bar) bool { return b.Label != "" }) && strings.Join(r.Facts, "") == ""
}

// pick returns the rows of the small picture.
func pick(rows []chart.Row) (few []chart.Row) {
	for _, r := range rows {
		if slices.Contains(smallRows, r.Name) {
			r.Facts = r.Facts[:2]
			few = append(few, r)
		}
	}
	return few
}

// paint puts a table into the picture of all stores.
func paint(c *chart.Chart, table saved) {
	panel, fact := slices.Index(drawn, table.bench.name), slices.Index(facts, table.bench.name)
	if panel < 0 && fact < 0 {
		return
	}
	if n := len(c.Groups); n == 0 || c.Groups[n-1].Title != table.store.Title {
		g := chart.Group{Title: table.store.Title}
		for _, s := range table.store.Sides {
			if !s.Empty {
				g.Rows = append(g.Rows, chart.Row{
					Name: s.Name, Tone: int(s.Kind), Bars: make([]chart.Bar, len(drawn)), Facts: make([]string, len(c.Facts)),
				})
			}
		}
		c.Groups = append(c.Groups, g)
	}
	rows := c.Groups[len(c.Groups)-1].Rows
	for _, r := range table.rows {
		at := slices.IndexFunc(rows, func(row chart.Row) bool { return row.Name == r[""] })
		if at < 0 {
			continue
		}
		if panel >= 0 {
			p50 := cell(r, "p50")
			rows[at].Bars[panel] = chart.Bar{P50: parseDuration(p50), P99: parseDuration(cell(r, "p99")), Label: p50}
		}
		if fact >= 0 {
			rows[at].Facts[2*fact] = cell(r, "locks/s")
			rows[at].Facts[2*fact+1] = cell(r, "min/max")
		}
	}
}

// parseDuration reads the output of duration. Anything else is 0.
func parseDuration(text string) time.Duration {
	d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		return 0
	}
	return d
}
