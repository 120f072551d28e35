package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/internal/publish"
)

// peers are the columns of the tables in the README: a side of a store, and a display
// name.
var peers = []struct{ store, side, name string }{
	{"Redis", "redsync on go-redis, 1 ms", "redsync"},
	{"Redis", "bsm/redislock, 1 ms", "bsm/redislock"},
	{"Redis", "rueidislock", "rueidislock"},
	{"Redis", "SET NX on go-redis, 1 ms", "`SET NX`"},
	{"PostgreSQL, sessions", "pg_advisory_lock on pgx", "advisory lock"},
	{"etcd", "concurrency.Mutex", "etcd `Mutex`"},
}

// ratioRows are the rows of the tables in the README, by bench.
var ratioRows = []struct{ bench, title string }{
	{"alone", "one goroutine alone"},
	{"hand-off", "hand-off between processes"},
	{"distinct-keys", "64 goroutines, a key each"},
	{"one-key", "one key, 8 goroutines in each of 4 processes"},
	{"one-each", "one key, 1 goroutine in each of 4 processes"},
}

// ratios returns the tables of the README: the speed of peers relative to Holdfast in the
// same store, and the fairness on one key, with the fairness of Holdfast in parentheses.
func ratios(text string) (speed, fairness string) {
	speedHead, fairHead := []string{"speed beside Holdfast"}, []string{"fairness (Holdfast)"}
	for _, p := range peers {
		speedHead, fairHead = append(speedHead, p.name), append(fairHead, p.name)
	}
	var speedTable, fairTable strings.Builder
	publish.Head(&speedTable, speedHead...)
	publish.Head(&fairTable, fairHead...)
	tables := readTables(text)
	for _, r := range ratioRows {
		speeds, fair, contended := []string{r.title}, []string{r.title}, false
		for _, p := range peers {
			at := slices.IndexFunc(tables, func(s saved) bool { return s.store.Title == p.store && s.bench.name == r.bench })
			if at < 0 {
				speeds, fair = append(speeds, "–"), append(fair, "–")
				continue
			}
			peer, ours := tables[at].row(p.side), tables[at].row("Holdfast")
			speeds = append(speeds, timesAsFast(peer, tables[at].bench))
			fair = append(fair, cell(peer, "min/max")+" ("+cell(ours, "min/max")+")")
			contended = tables[at].bench.contended()
		}
		publish.Row(&speedTable, speeds...)
		if contended {
			publish.Row(&fairTable, fair...)
		}
	}
	return speedTable.String(), fairTable.String()
}

// row returns the row of a side, nil if the side has no row.
func (s saved) row(side string) map[string]string {
	for _, r := range s.rows {
		if r[""] == side {
			return r
		}
	}
	return nil
}

// timesAsFast shows how many times as fast as Holdfast a side is.
func timesAsFast(row map[string]string, b bench) string { return shown(speed(row, b)) }

func shown(speed float64) string {
	if speed == 0 {
		return "–"
	}
	return significant(speed, 2)
}

// speed returns how many times as fast as Holdfast a side is, 0 if the row does not say.
func speed(row map[string]string, b bench) float64 {
	ratio, err := strconv.ParseFloat(cell(row, "Holdfast"), 64)
	if err != nil || ratio == 0 {
		return 0
	}
	if b.timed {
		ratio = 1 / ratio
	}
	return ratio
}

// summarized are the benches of summary.
var summarized = []string{"alone", "hand-off", "one-key", "one-each", "paced", "waiting-10", "waiting-100", "distinct-keys", "many-keys", "new-keys"}

// summary returns the table of docs/bench.md: the speed of the fastest other side relative to
// Holdfast, for each store and bench.
func summary(text string) string {
	var table strings.Builder
	publish.Head(&table, append([]string{"fastest other side"}, summarized...)...)
	tables := readTables(text)
	for _, st := range stores.All() {
		cells, measured := []string{st.Title}, false
		for _, name := range summarized {
			best := 0.0
			for _, t := range tables {
				if t.store.Title == st.Title && t.bench.name == name {
					best, measured = t.fastest(), true
				}
			}
			cells = append(cells, shown(best))
		}
		if measured {
			publish.Row(&table, cells...)
		}
	}
	return table.String()
}

// fastest returns the speed of the fastest side that is not Holdfast, 0 without such a side.
func (s saved) fastest() (best float64) {
	for _, side := range s.store.Sides {
		if side.Kind != stores.Ours && !side.Empty {
			best = max(best, speed(s.row(side.Name), s.bench))
		}
	}
	return best
}
