package sqlstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/identifier"
)

// A Dialect describes the peculiarities of an engine. There are four: [Postgres],
// [MySQL], also for MariaDB, [SQLite] and [SQLServer].
type Dialect struct {
	name     string
	quote    string // around an identifier
	numbered string // before the numbers of parameters, such as $; "" if parameters are ?
	now      string // the engine's clock in microseconds since 1970
	greatest string // the function that returns the largest of its arguments, "" if there is none
	top      bool   // a query limits its rows by TOP instead of LIMIT

	// octets says that keys and ids are parameters of bytes, because the engine turns no
	// text into bytes by itself.
	octets bool

	// settings stand before each statement, and hold for the statement only.
	settings string

	// clock stands before each statement that contains now. If the engine is timeless, clock
	// has one parameter, the time.
	clock    string
	timeless bool

	// returning says that UPDATE has RETURNING. Otherwise keep is a function that returns
	// a number as the last inserted id.
	returning bool
	keep      string

	// brief stands before a renewal of several rows, so that it waits little for a locked row.
	brief string

	// byName stands after the name of the table, so that the engine finds rows by the index of
	// the names.
	byName string

	// changed stands after a statement and returns the number of changed rows, if the client
	// cannot tell. minted returns the token of acquireRow, from key and id, or no row.
	changed, minted string

	// prepares says that statements should be prepared, because the client does not
	// prepare by itself.
	prepares bool

	// oneWriter says that concurrent writers do not wait, but fail. The writers of a
	// process then take turns in FIFO order.
	oneWriter bool

	// lasting says that clients break the connection of an interrupted statement. So the
	// statements of Acquire run to their end even if the caller has left.
	lasting bool

	// unbroken says that the same holds for all statements, because clients wait for the end
	// of an interrupted statement.
	unbroken bool

	// takeSome and freeSome are acquireRow and releaseRows for the requests of several calls, "" if
	// the engine has no such statements. takeSome also inserts rows, unless makeSome does. They leave
	// out rows that are locked, so that a request waits for the row of another only while that row is
	// inserted.
	takeSome, makeSome, freeSome string

	load string // loadRow for an engine that reads two rows at two times; "" if there is no need

	// glance and joined are loadRow and returnRow with two claims of the queue, if only one claim
	// holds, no phase of readers lasts, and the first waiter wants the whole key: the first, and the
	// claim that has the id of glance, or the last. Mostly a decision needs no more, and a queue may be long. "" if the engine
	// has no such statements.
	glance, joined string

	create  []string // makes the table, the view and the row without a name, unless they exist
	insert  string   // inserts a row, or changes nothing if the row exists
	publish string   // does an {update}, and sends messages; "" if the engine cannot
	join    string   // adds a claim to the queue of a row; "" if there is no need, as decisions take turns
	stay    string   // writes a claim in the queue anew, with a longer place
	leave   string   // removes a claim from the queue, unless the claim is the first
	extend  string   // prolongs a claim that holds, and was not left

	// handOver lets the first waiter hold in place of the only holder, whatever other
	// processes write to the rest of the queue meanwhile. The process of the first waiter
	// must listen where the message goes.
	handOver string

	// add, swap and relay are in place of join, stay, leave, extend and handOver for an engine that
	// edits the claims as a text, see edit. add adds a claim to the end of a queue. swap puts a text
	// in place of the text of a claim, and relay does so twice.
	add, swap, relay string

	// together is a statement that runs the statements of create, in {create}; "" if
	// create may run one by one.
	together string

	// light is a condition that holds, and spares the statement the wait for the disk.
	light string

	// commits is a condition that holds if each statement commits by itself.
	commits string

	// duplicate is the error code by which insert reports that the row exists, "" if
	// insert reports no error.
	duplicate string

	version string // queries the server's version
	needs   needs

	checks []string // queries: each returns warnings about a setting, or no rows
	code   func(error) string
	errors map[string]verdict // by code
	pauses pauses
}

// Engine returns the Dialect with this name.
func Engine(d dialect.Dialect) (*Dialect, error) {
	switch d {
	case dialect.Postgres:
		return Postgres, nil
	case dialect.MySQL:
		return MySQL, nil
	case dialect.SQLite:
		return SQLite, nil
	case dialect.SQLServer:
		return SQLServer, nil
	}
	return nil, fmt.Errorf("%w: %v is no engine: want dialect.Postgres, MySQL, SQLite or SQLServer", driver.ErrInvalid, d)
}

// Pauses say how long to wait after a conflict: a random time from least to most. most
// doubles each time up to longest.
type pauses struct{ least, most, longest time.Duration }

// patient is for engines with concurrent writers. A statement mostly waits in the engine for a
// locked row. In MariaDB a statement of mysqllock may fail at once instead, so that many writers
// of one row need long pauses.
var patient = pauses{500 * time.Microsecond, 1500 * time.Microsecond, 48 * time.Millisecond}

// A verdict says how to handle an error of the engine. Errors without a verdict may pass,
// and the core retries.
type verdict struct {
	again bool   // retry soon: a conflict, and nothing has changed
	alone bool   // one row, as a locked row: a statement for other rows may succeed
	final string // do not retry before this is done
	hint  string // what may be wrong
}

// Reasons why an error is final.
const (
	missing   = `there is no table {table} as this version needs it: run "holdfast init" once with the URL of this store, or Store.Create`
	homeless  = "there is no schema, or database, in which the table {table} could be: create that first"
	other     = "the table {table} is not one of this package's: choose another name"
	forbidden = "this user may not do that with the table {table}: locks need SELECT, INSERT, UPDATE and DELETE on it, and to make it takes the right to create tables and views"
	encoding  = "the encoding of the database has no place in the table {table} for the letters of this key, owner or note: use a database with UTF-8"
	old       = "the database does not understand what the table {table} needs: is its version one that the documentation names?"
)

// Hints at what may be wrong. Every such error may pass.
const (
	writeless = "the server takes no writes, like a standby or a replaced primary: locks need a server that takes writes"
	ending    = "the server goes down or comes up, or an operator has ended the connection"
	crowded   = "the server has no connection left for this user: let it have more, or others fewer"
	full      = "the disk of the server, or the room that it may use there, is full: locks can be neither taken nor kept until there is more"
	exhausted = "the server has no memory left for this"
)

// explain returns err with the remedy.
func (v verdict) explain(err error, table string) error {
	name := strings.NewReplacer("{table}", table)
	switch {
	case v.final != "":
		return fmt.Errorf("%w: %s: %w", driver.ErrInvalid, name.Replace(v.final), err)
	case v.hint != "":
		return fmt.Errorf("%s: %w", name.Replace(v.hint), err)
	}
	return err
}

// shares reports whether calls that are detached share statements. A call that may wait for the
// statement of another call takes a slot for each statement of its own, and none while it waits.
func (d *Dialect) shares() bool { return d.lasting && d.takeSome != "" }

// String returns the name of the engine.
func (d *Dialect) String() string { return d.name }

// table quotes a name, or a schema, a dot and a name.
func (d *Dialect) table(name, suffix string) (string, error) {
	return identifier.Quote(name, suffix, d.quote)
}

// compiler returns the function that turns texts into statements.
func (d *Dialect) compiler(table string) (func(text string) string, error) {
	name, err := d.table(table, "")
	if err != nil {
		return nil, err
	}
	view, err := d.table(table, "_claims")
	if err != nil {
		return nil, err
	}
	list := []string{
		"{table}", name, "{view}", view, "{now}", d.now, "{keep}", d.keep, "{light}", d.light, "{commits}", d.commits, "{none}", d.none(),
		"{crowd}", strconv.Itoa(book.Crowd), "{most}", strconv.Itoa(driver.MaxWeight), "{next}", d.larger("version + 1", d.now), "{token}", d.larger("fence + 1", d.now), "{format}", strconv.Itoa(format),
	}
	seek := ""
	if d.byName != "" {
		seek = "\nFROM " + name + d.byName
	}
	list = append(list, "{by name}", d.byName, "{seek}", seek)
	for _, most := range []string{"500", "1000"} {
		if d.top {
			list = append(list, "{top "+most+"}", "TOP "+most, "{limit "+most+"}", "")
		} else {
			list = append(list, "{top "+most+"} ", "", "{limit "+most+"}", "LIMIT "+most)
		}
	}
	words := strings.NewReplacer(list...)
	return func(text string) string {
		text = words.Replace(text)
		if strings.Contains(text, d.now) {
			text = d.clock + text
		}
		if d.numbered != "" {
			text = number(text, d.numbered)
		}
		return text
	}, nil
}

// larger is the larger of two numbers.
func (d *Dialect) larger(a, b string) string {
	if d.greatest == "" {
		return "CASE WHEN " + a + " > " + b + " THEN " + a + " ELSE " + b + " END"
	}
	return d.greatest + "(" + a + ", " + b + ")"
}

// none is the name without letters.
func (d *Dialect) none() string {
	if d.octets {
		return "0x"
	}
	return "''"
}

// number gives each ? its number, after mark.
func number(text, mark string) string {
	var b strings.Builder
	for n, part := range strings.Split(text, "?") {
		if n > 0 {
			b.WriteString(mark + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}

// sqlState is the code of an error from a client of Postgres.
func sqlState(err error) string {
	if coded := (interface{ SQLState() string })(nil); errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}
