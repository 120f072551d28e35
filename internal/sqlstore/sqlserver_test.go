package sqlstore

import (
	"errors"
	"fmt"
	"testing"
)

// A numbered error is one of go-mssqldb.
type numbered struct {
	number int32
	text   string
}

func (n numbered) Error() string         { return "mssql: " + n.text }
func (n numbered) SQLErrorNumber() int32 { return n.number }

// Babelfish has one number for what SQL Server does not know.
func TestSQLServerCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{numbered{1205, "deadlock"}, "1205"},
		{numbered{2627, "duplicate"}, "2627"},
		{numbered{2601, "duplicate"}, "2627"},
		{fmt.Errorf("wrapped: %w", numbered{4060, "no database"}), "4060"},
		{numbered{33557097, "canceling statement due to lock timeout"}, "1222"},
		{fmt.Errorf("wrapped: %w", numbered{33557097, "canceling statement due to lock timeout"}), "1222"},
		{numbered{33557097, "could not serialize access due to concurrent update"}, "3960"},
		{numbered{33557097, `relation "absent" does not exist`}, "208"},
		{numbered{33557097, `column "version" does not exist`}, "207"},
		{numbered{33557097, `schema "nowhere" does not exist`}, "2760"},
		{numbered{33557097, "permission denied for table holdfast"}, "229"},
		{numbered{33557097, "anything"}, ""},
		{errors.New("connection reset"), ""},
	} {
		if got := sqlServerCode(test.err); got != test.want {
			t.Errorf("%v has the code %q, want %q", test.err, got, test.want)
		}
	}
}
