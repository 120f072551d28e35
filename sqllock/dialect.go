package sqllock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/identifier"
)

// A Dialect is what one engine does in its own way. There are three: [Postgres],
// [MySQL], which is MariaDB's too, and [SQLite].
type Dialect struct {
	name     string
	quote    string // around an identifier
	numbered bool   // parameters are $1, $2 instead of ?
	now      string // the engine's clock in microseconds since 1970
	greatest string // the function that returns the largest of its arguments

	// clock stands before each statement of an engine without a clock of its
	// own, and has one parameter, the time.
	clock string

	// returning says that UPDATE has RETURNING. Otherwise keep is a function
	// that makes a number come back as the id that was inserted last.
	returning bool
	keep      string

	// prepares says that statements should be prepared, because the client does
	// not do so by itself.
	prepares bool

	// oneWriter says that writers do not wait for each other, but fail. Those
	// of one process then take turns, first come first, instead of all trying.
	oneWriter bool

	// lasting says that clients break the connection of a statement that is cut
	// short, so that those of Acquire come to their end though its caller has left.
	lasting bool

	create  []string // makes the table, the view and the row without a name, unless they are there
	insert  string   // makes a row, or changes none if it is there
	publish string   // as updateRow, and sends messages; "" if the engine cannot

	// together is a statement that runs those of create, in {create}; "" if they
	// may be run one by one.
	together string

	// commits is a condition that holds if each statement commits by itself.
	commits string

	// duplicate is the code of the error by which insert says that the row is
	// there, "" if it says it without.
	duplicate string

	version string // asks for the server's version
	needs   needs

	checks []string // each returns sentences for people about a setting, or nothing
	code   func(error) string
	errors map[string]verdict // by code
	pauses pauses
}

// Pauses are how long to wait after another was in the way: a random time from
// least to most, and most doubles each time up to longest.
type pauses struct{ least, most, longest time.Duration }

// patient is for engines whose own locks make most of those wait who would be
// in each other's way.
var patient = pauses{500 * time.Microsecond, 1500 * time.Microsecond, 48 * time.Millisecond}

// A verdict says what is to be done about an error of the engine. Others may
// pass, and are the core's to try again.
type verdict struct {
	again bool   // soon: another was in the way, and nothing has changed
	final string // never, before this is done
	hint  string // this may be wrong
}

// Why an error is final.
const (
	missing   = `there is no table {table} as this version needs it: make it once with "holdfast init --store URL" or Store.Create`
	homeless  = "there is no schema, or database, in which the table {table} could be: create that first"
	other     = "the table {table} is not one of this package's: choose another name"
	forbidden = "this user may not do that with the table {table}: locks need SELECT, INSERT, UPDATE and DELETE on it, and to make it takes the right to create tables and views"
	encoding  = "the encoding of the database has no place in the table {table} for the letters of this key, owner or note: use a database with UTF-8"
	old       = "the database does not understand what the table {table} needs: is its version one that the documentation names?"
)

// What may be wrong. All of it may pass.
const (
	writeless = "the server takes no writes, as a standby does, or a primary that another replaces: locks need one that does"
	ending    = "the server goes down or comes up, or somebody has ended the connection"
	crowded   = "the server has no connection left for this user: let it have more, or others fewer"
	full      = "the disk of the server, or the room that it may use there, is full: locks can be neither taken nor kept until there is more"
	exhausted = "the server has no memory left for this"
)

// explain returns err with what is to be done about it.
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

// String returns the name of the engine.
func (d *Dialect) String() string { return d.name }

// table quotes a name, which that of a schema and a dot may precede.
func (d *Dialect) table(name, suffix string) (string, error) {
	return identifier.Quote(name, suffix, d.quote)
}

// compiler returns what makes statements of texts.
func (d *Dialect) compiler(table string) (func(text string) string, error) {
	name, err := d.table(table, "")
	if err != nil {
		return nil, err
	}
	view, err := d.table(table, "_claims")
	if err != nil {
		return nil, err
	}
	words := strings.NewReplacer("{table}", name, "{view}", view, "{now}", d.now, "{greatest}", d.greatest, "{keep}", d.keep, "{commits}", d.commits)
	return func(text string) string {
		text = words.Replace(text)
		if strings.Contains(text, d.now) {
			text = d.clock + text
		}
		if d.numbered {
			text = number(text)
		}
		return text
	}, nil
}

// number gives each ? its number.
func number(text string) string {
	var b strings.Builder
	for n, part := range strings.Split(text, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}

// sqlState is the code of an error as the clients of Postgres tell it.
func sqlState(err error) string {
	if coded := (interface{ SQLState() string })(nil); errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}
