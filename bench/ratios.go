package main

import (
	"slices"
	"strconv"
	"strings"

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

// timesAsFast returns how many times as fast as Holdfast a side is.
func timesAsFast(row map[string]string, b bench) string {
	ratio, err := strconv.ParseFloat(cell(row, "Holdfast"), 64)
	if err != nil || ratio == 0 {
		return "–"
	}
	if b.timed {
		ratio = 1 / ratio
	}
	return significant(ratio, 2)
}
