package goldentest

import (
	"embed"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

// The rows of tables are here, because several packages keep their claims in a table.
//
//go:embed testdata/*.sql
var rows embed.FS

// Row returns the statement that inserts the row of "holder" or "queue" into a table.
func Row(key, table string, now int64) string {
	text := must.Get(rows.ReadFile("testdata/" + key + ".sql"))
	return strings.TrimSpace(Fill(strings.ReplaceAll(string(text), "{table}", table), now))
}

// A Table is a store over an empty table.
type Table struct {
	Store driver.Store
	Name  string

	// Exec runs a statement, and Query returns the only row of a query as text.
	Exec  func(statement string)
	Query func(query string) string

	// Octets says that the engine keeps keys and ids as bytes, and turns no text into bytes by itself.
	Octets bool
}

// literal is a text in a statement.
var literal = regexp.MustCompile(`'[^']*'`)

// engine returns a statement with keys and ids as the engine has them.
func (t Table) engine(statement string) string {
	if !t.Octets {
		return statement
	}
	return literal.ReplaceAllStringFunc(statement, func(text string) string {
		if text = strings.Trim(text, "'"); strings.HasPrefix(text, "{") {
			return "'" + text + "'" // claims
		}
		return "0x" + hex.EncodeToString([]byte(text))
	})
}

func (t Table) exec(statement string) { t.Exec(t.engine(statement)) }

// Newer makes the row of a key one of the next format, and returns a function that reads the
// row. By the columns of this release nobody holds the row, and everything has expired.
func (t Table) Newer(key string) (row func() string) {
	t.exec("UPDATE " + t.Name + ` SET version = version + 1, format = format + 1, sole = '', since = 0, until = 0, claims = '{"line":{"newer":"text"}}' WHERE name = '` + key + "'")
	return func() string { return t.row(key) }
}

// row reads the row of a key.
func (t Table) row(key string) string {
	return t.Query(t.engine("SELECT version, format, fence, sole, since, until, claims FROM " + t.Name + " WHERE name = '" + key + "'"))
}

// Golden checks that the store understands the rows of testdata. It also checks that the
// statements for a sole claim leave rows of the next format alone.
func (t Table) Golden(tb testing.TB) {
	tb.Helper()
	now := time.Now().UnixMicro()
	t.exec(Row("holder", t.Name, now))
	Holder(tb, t.Store, uint64(now), uint64(now)+2)
	t.exec("DELETE FROM " + t.Name + " WHERE name = 'holder'")
	t.exec(Row("queue", t.Name, now))
	Queue(tb, t.Store, uint64(now))

	t.exec(Row("holder", t.Name, now))
	t.exec("UPDATE " + t.Name + " SET format = format + 1 WHERE name = 'holder'")
	before, holder := t.row("holder"), user{tb, t.Store, "holder"}.claim("holder", driver.MaxWeight)
	for name, errs := range map[string][]error{
		"Renew":   t.Store.Renew(bounded(tb), []driver.Renewal{{Claim: holder}}),
		"Release": t.Store.Release(bounded(tb), []driver.Release{{Claim: holder}}),
	} {
		if err := errors.Join(errs...); !errors.Is(err, driver.ErrInvalid) {
			tb.Errorf("%s of a claim in a row of the next format: %v, want an ErrInvalid", name, err)
		}
	}
	// MySQL reads rows back if a batch was renewed in part. That query must leave out the row
	// of the next format.
	beside := user{tb, t.Store, "beside"}
	other := beside.claim("other", driver.MaxWeight)
	beside.acquire(other, true)
	if errs := t.Store.Renew(bounded(tb), []driver.Renewal{{Claim: holder}, {Claim: other}}); len(errs) != 2 || !errors.Is(errs[0], driver.ErrInvalid) || errs[1] != nil {
		tb.Errorf("Renew of a claim in a row of the next format, and of another claim: %v", errs)
	}
	if after := t.row("holder"); after != before {
		tb.Errorf("the row of the next format has changed from %s to %s", before, after)
	}
	t.exec("DELETE FROM " + t.Name + " WHERE name = 'beside'")
}
