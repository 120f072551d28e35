package sim

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/detached"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

var tables = &backend{
	make:    newTable,
	ttls:    []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 15 * time.Second},
	least:   holdfast.MinTTL,
	kinds:   []Kind{Exclusive, Exclusive, Shared, Slots},
	atLeast: 2,
	manner:  []func(time.Duration) Faults{quiet, stream(lossy), stream(slow), stream(hostile)},
	cuts:    3,
	crowds:  []int{1, 1, 2, 3},
}

// TestSQL runs package sqllock over one table, whose statements are read as Postgres has
// them: each is carried out at once and as a whole. Some of the servers set their clock
// back.
func TestSQL(t *testing.T) { worlds.Run(t, 0.1, 5, tables.explore) }

// A table is that of the claims, and the server that has it.
type table struct {
	w     *World
	clock drift
	steps bool // the clock is set back
	conns int  // of each process

	mu   sync.Mutex
	back time.Duration // by how much the clock was set back
	rows map[string]tuple
	past []snapshot

	locks *rand.Rand          // which rows others hold locked
	words map[string][]string // of statements
}

// A snapshot is the rows before a statement.
type snapshot struct {
	at   time.Time
	rows map[string]tuple
}

// A tuple is a row: int64 and string, by column.
type tuple map[string]any

func newTable(w *World) Store {
	floor := tuple{"name": "", "version": int64(1), "format": int64(1), "fence": int64(0), "sole": "", "since": int64(0), "until": int64(0), "claims": "{}"}
	return &table{
		w: w, clock: newDrift(w.Rand("table")), locks: w.Rand("locks"),
		conns: pick(w.Rand("conns"), 0, 2, 4),
		rows:  map[string]tuple{"": floor}, words: make(map[string][]string),
	}
}

// plan draws when the clock is set back.
func (t *table) plan(ttl, length time.Duration) {
	r := t.w.Rand("clock")
	t.w.lasts(4 * ttl)
	if t.steps = r.IntN(2) == 0; !t.steps {
		return
	}
	for range 2 {
		later(t.w, upto(r, length), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.w.Trace.add(Event{Step: Fault, Call: "clock"}, "set back")
			t.back += ttl
		})
	}
}

// fail goes back to what a replica has, which has not heard of the last writes. That keeps
// tokens apart only while the clock was not set back.
func (t *table) fail(r *rand.Rand, ttl time.Duration) bool {
	if t.steps {
		return false
	}
	t.w.Judge.Forgot(2*ttl + time.Second)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.w.Trace.add(Event{Step: Fault, Call: "fail over"}, nil)
	for since := time.Now().Add(-upto(r, time.Second)); len(t.past) > 0 && t.past[len(t.past)-1].at.After(since); {
		t.rows, t.past = t.past[len(t.past)-1].rows, t.past[:len(t.past)-1]
	}
	return true
}

// calm implements [calming]. Waiters poll, twice a second at least. A call that joins the only claim
// of a row writes the whole row, and may lose many races to a process that locks and unlocks without
// a pause. A waiter that gives up just as it is granted the key hands on at its next look.
func (t *table) calm() (idle, place time.Duration) { return 1100 * time.Millisecond, 10 * settled }

// Connect implements [Store].
func (t *table) Connect(p *Process) driver.Store {
	return must.Get(sqlstore.New(&statements{t, p.Link("store")}, sqlstore.Postgres, nil))
}

// Left implements [Store].
func (t *table) Left() (keys []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.nowLocked()
	for name, row := range t.rows {
		var page struct{ Held, Line []struct{ Until int64 } }
		if err := json.Unmarshal([]byte(row["claims"].(string)), &page); err != nil {
			return nil, err
		}
		live := row["sole"] != "" && row["until"].(int64) > now
		for _, c := range append(page.Held, page.Line...) {
			live = live || c.Until > now
		}
		if live {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Close implements [Store].
func (t *table) Close() error { return nil }

// nowLocked is the clock of the server in microseconds.
func (t *table) nowLocked() int64 { return t.clock.at(time.Now()).Add(-t.back).UnixMicro() }

// statements is the client of a process.
type statements struct {
	table *table
	link  *Link
}

// A result is the rows that a statement returns, and how many it has changed.
type result struct {
	rows    [][]any
	changed int64
}

func (r result) String() string { return fmt.Sprint(r.changed, " changed ", r.rows) }

func (c *statements) run(ctx context.Context, st sqlstore.Statement) (result, error) {
	if detached.Runs(ctx) {
		ctx = detached.Sent(ctx)
	}
	verb, _, _ := strings.Cut(st.Text, " ")
	return Send(ctx, c.link, strings.ToLower(verb), "", fmt.Sprint(st.Args), func() result {
		c.table.mu.Lock()
		defer c.table.mu.Unlock()
		return c.table.runLocked(st)
	})
}

// Query implements [sqlstore.Client].
func (c *statements) Query(ctx context.Context, st sqlstore.Statement, each func(sqlstore.Scan) error) error {
	r, err := c.run(ctx, st)
	for _, row := range r.rows {
		err = errors.Join(err, each(func(dest ...any) error { return assign(dest, row) }))
	}
	return err
}

// Exec implements [sqlstore.Client].
func (c *statements) Exec(ctx context.Context, st sqlstore.Statement) (sqlstore.Result, error) {
	r, err := c.run(ctx, st)
	return sqlstore.Result{Rows: r.changed}, err
}

// Conns implements [sqlstore.Client].
func (c *statements) Conns() int { return c.table.conns }

// Close implements [sqlstore.Client].
func (c *statements) Close() error { return nil }

// assign copies the values of a row.
func assign(dest, row []any) error {
	for i, d := range dest {
		switch d := d.(type) {
		case *int64:
			*d = row[i].(int64)
		case *string:
			*d = row[i].(string)
		case sql.Scanner:
			if err := d.Scan(row[i]); err != nil {
				return err
			}
		default:
			panic(fmt.Sprintf("sql: cannot scan into %T", d))
		}
	}
	return nil
}

// plain are the words of a statement that only Postgres has.
var plain = strings.NewReplacer(
	`CAST(date_part('epoch', clock_timestamp()) * 1000000 AS bigint)`, "now",
	`set_config('synchronous_commit', 'off', true) = 'off'`, "true",
)

// runLocked carries out a statement.
func (t *table) runLocked(st sqlstore.Statement) (r result) {
	words := t.words[st.Text]
	if words == nil {
		words = split(plain.Replace(st.Text))
		t.words[st.Text] = words
	}
	if verb := words[0]; verb != "SELECT" {
		t.past = append(t.past, snapshot{time.Now(), maps.Clone(t.rows)})
		t.past = t.past[max(0, len(t.past)-100):]
	}
	p := &parser{words: words, args: st.Args, now: t.nowLocked()}
	switch verb := p.next(); {
	case verb == "SELECT": // of one row, and what it joins is fixed
		id := ""
		if len(st.Args) > 1 {
			id = st.Args[1].(string)
		}
		r.rows = [][]any{t.stateLocked(st.Text, st.Args[0].(string), id, p.now)}
	case verb == "WITH":
		r = t.someLocked(st.Text, st.Args[0].(string), p.now)
	case slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "jsonb_") }):
		r = t.changeLocked(st.Text, st.Args, p.now)
	case verb == "INSERT":
		p.skip("INTO", "holdfast", "(")
		row := tuple{}
		columns := p.list()
		p.skip("VALUES", "(")
		for i, column := range columns {
			if i > 0 {
				p.skip(",")
			}
			row[column] = p.expression(nil)
		}
		if name := row["name"].(string); t.rows[name] == nil {
			t.rows[name] = row
			r.changed = 1
		}
	case verb == "UPDATE":
		p.skip("holdfast", "SET")
		from := p.at
		for _, name := range slices.Sorted(maps.Keys(t.rows)) {
			p.at = from
			row := t.rows[name]
			changed := maps.Clone(row)
			for {
				column := p.next()
				p.skip("=")
				changed[column] = p.expression(row)
				if !p.accept(",") {
					break
				}
			}
			p.skip("WHERE")
			if p.expression(row) != true {
				continue
			}
			t.rows[name] = changed
			r.changed++
			if p.accept("RETURNING") {
				r.rows = append(r.rows, []any{p.expression(changed)})
			}
		}
	default:
		panic("sql: " + st.Text)
	}
	return r
}
