package fence

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/dialect"
)

// Nothing of these reaches an engine; what does is tested with real ones, in
// proof/fences.

func unreachable(string, ...any) Row { panic("a statement was sent") }

func TestTables(t *testing.T) {
	for table, want := range map[string]string{
		"":                         `"holdfast_fences"`,
		"fences":                   `"fences"`,
		"App.Fences_2":             `"App"."Fences_2"`,
		`f"; DROP TABLE account--`: "",
	} {
		texts, err := SQL{Table: table, Dialect: dialect.Postgres}.Schema()
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "SQL.Table")):
			t.Errorf("table %q: %v, want an error that says what is wrong with it", table, err)
		case want != "" && (err != nil || !strings.Contains(strings.Join(texts, ";"), "EXISTS "+want+" (")):
			t.Errorf("table %q: %q, %v; want %s in it", table, texts, err, want)
		}
	}
	if texts, err := (SQL{Table: "a.b", Dialect: dialect.MySQL}).Schema(); err != nil || !strings.Contains(strings.Join(texts, ";"), "EXISTS `a`.`b` (") {
		t.Errorf("MySQL: %q, %v; want backquotes", texts, err)
	}
}

func TestWhatIsRefusedBeforehand(t *testing.T) {
	good := SQL{Dialect: dialect.SQLite}
	for want, err := range map[string]error{
		"is no engine":    SQL{}.CheckRow("key", 1, unreachable),
		"SQL.Table":       SQL{Dialect: dialect.SQLite, Table: "'"}.CheckRow("key", 1, unreachable),
		"use Check":       SQL{Dialect: dialect.MySQL}.CheckRow("key", 1, unreachable),
		"key is empty":    good.CheckRow("", 1, unreachable),
		"has 513 bytes":   good.CheckRow(strings.Repeat("k", 513), 1, unreachable),
		"not valid UTF-8": good.CheckRow("\xff", 1, unreachable),
		"beyond":          good.CheckRow("key", math.MaxInt64+1, unreachable),
		"has no tokens":   good.CheckRow("key", 0, unreachable),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
}

func TestOutdatedError(t *testing.T) {
	var err error = &OutdatedError{Key: "account/42", Token: 17, Highest: 18}
	if want := `fence: token 17 of "account/42" is outdated: 18 has been seen`; err.Error() != want || !errors.Is(err, ErrOutdated) {
		t.Errorf("%v, ErrOutdated: %v; want %s", err, errors.Is(err, ErrOutdated), want)
	}
}
