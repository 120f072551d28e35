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
			table, ok := find(tables, p.store, r.bench)
			if !ok {
				speeds, fair = append(speeds, "–"), append(fair, "–")
				continue
			}
			peer, ours := table.row(p.side), table.row("Holdfast")
			speeds = append(speeds, timesAsFast(peer, table.bench))
			fair = append(fair, cell(peer, "min/max")+" ("+cell(ours, "min/max")+")")
			contended = table.bench.contended()
		}
		publish.Row(&speedTable, speeds...)
		if contended {
			publish.Row(&fairTable, fair...)
		}
	}
	return speedTable.String(), fairTable.String()
}

// find returns the table of a store, by its title, and a bench.
func find(tables []saved, store, bench string) (table saved, ok bool) {
	at := slices.IndexFunc(tables, func(s saved) bool { return s.store.Title == store && s.bench.name == bench })
	if at < 0 {
		return saved{}, false
	}
	return tables[at], true
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

// summary returns the table of docs/bench.md: the speed of the fastest other side relative to
// Holdfast, for each store and bench.
func summary(text string) string {
	var table strings.Builder
	heads := []string{"fastest other side"}
	for _, b := range benches {
		heads = append(heads, b.name)
	}
	publish.Head(&table, heads...)
	tables := readTables(text)
	for _, st := range stores.All() {
		cells, measured := []string{st.Title}, false
		for _, b := range benches {
			t, ok := find(tables, st.Title, b.name)
			measured = measured || ok
			cells = append(cells, shown(t.fastest()))
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
