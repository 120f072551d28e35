package fences

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// The row of a newer release is not taken for expired, whatever its other columns say.
func TestNewerRecord(t *testing.T) {
	each(t, func(e *engine) {
		l := e.ledger()
		_, err := l.records.Begin(e.Context(), "newer", 7, "print", time.Hour)
		l.must(err)
		for _, columns := range []string{"state = 1", "state = 0, expires = 0"} {
			_, err = e.db.ExecContext(e.Context(), "UPDATE "+l.records.Table+" SET format = 2, "+columns)
			l.must(err)
			_, loaded := l.records.Load(e.Context(), "newer")
			_, begun := l.records.Begin(e.Context(), "newer", 9, "print", time.Hour)
			for name, err := range map[string]error{
				"Load": loaded, "Begin": begun,
				"Finish": l.records.Finish(e.Context(), "newer", 7, []byte("other"), time.Hour),
				"Forget": l.records.Forget(e.Context(), "newer", 9),
			} {
				if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), `"newer" has format 2`) {
					e.Errorf("%s with %s: %v, want an ErrInvalid that names key and format", name, columns, err)
				}
			}
		}
		var token int64
		l.must(l.db.QueryRowContext(e.Context(), "SELECT token FROM "+l.records.Table+" WHERE format = 2").Scan(&token))
		if token != 7 {
			e.Errorf("the row has token %d now", token)
		}
	})
}
