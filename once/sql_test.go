package once_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/once"
)

// Nothing of these reaches an engine; what does is tested with real ones, in
// proof/fences.

func TestSchema(t *testing.T) {
	for _, test := range []struct {
		records once.SQL
		want    []string
		bad     string
	}{
		{once.SQL{Dialect: dialect.Postgres}, []string{`EXISTS "holdfast_once" (`, `EXISTS "holdfast_once_expires" ON "holdfast_once"`}, ""},
		{once.SQL{Dialect: dialect.Postgres, Table: "App.Once"}, []string{`EXISTS "App"."Once" (`, `EXISTS "Once_expires" ON "App"."Once"`}, ""},
		{once.SQL{Dialect: dialect.MySQL, Table: "a.b"}, []string{"EXISTS `a`.`b` (", "INDEX `b_expires`"}, ""},
		{once.SQL{Dialect: dialect.SQLite, Table: "a.b"}, []string{`EXISTS "a"."b" (`, `EXISTS "a"."b_expires" ON "b"`}, ""},
		{once.SQL{Dialect: dialect.SQLite, Table: `t"; DROP TABLE account--`}, nil, "SQL.Table"},
		{once.SQL{}, nil, "is no engine"},
	} {
		texts, err := test.records.Schema()
		if (err != nil) != (test.bad != "") || err != nil && !strings.Contains(err.Error(), test.bad) {
			t.Errorf("%v of %q: %v, want it to say %q", test.records.Dialect, test.records.Table, err, test.bad)
		}
		for _, want := range test.want {
			if text := strings.Join(texts, "\n"); !strings.Contains(text, want) {
				t.Errorf("%v of %q: %s, want %s in it", test.records.Dialect, test.records.Table, text, want)
			}
		}
	}
}

func TestSQLWithoutDatabase(t *testing.T) {
	records := &once.SQL{Dialect: dialect.Postgres}
	_, err := once.Runner{Locks: &holdfast.Locker{}, Records: records}.DoTx(t.Context(), "key", func(context.Context, *sql.Tx) ([]byte, error) { return nil, nil })
	for _, err := range []error{err, records.Create(t.Context()), records.Finish(t.Context(), "key", 1, nil, 1), records.Forget(t.Context(), "key", 1)} {
		if err == nil || !strings.Contains(err.Error(), "SQL.DB is not set") {
			t.Errorf("%v, want it to say what is missing", err)
		}
	}
}
