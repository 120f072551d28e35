package sqlstore

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

// A loser is a client whose first change comes back with its row and then fails
// to commit, as a serialization failure may. Another has the key after that.
type loser struct{ tries int }

type serialization struct{}

func (serialization) Error() string    { return "could not serialize access" }
func (serialization) SQLState() string { return "40001" }

func (l *loser) Query(_ context.Context, st Statement, each func(Scan) error) error {
	var row Scan
	switch {
	case strings.Contains(st.Text, "RETURNING fence"):
		row = func(dest ...any) error { *dest[0].(*int64) = 42; return nil }
	case strings.Contains(st.Text, "RETURNING name"):
		row = func(dest ...any) error { *dest[0].(*string) = "key"; return nil }
	default:
		return errClosed
	}
	if l.tries++; l.tries > 1 {
		return nil
	}
	if err := each(row); err != nil {
		return err
	}
	return serialization{}
}

func (l *loser) Exec(context.Context, Statement) (Result, error) { return Result{}, errClosed }

func (l *loser) Conns() int { return 0 }

func (l *loser) Close() error { return nil }

func TestRowsOfAFailedTryAreVoid(t *testing.T) {
	a := exclusive("a")
	for name, call := range map[string]func(*Store) bool{
		"Acquire": func(s *Store) bool { g, _ := s.Acquire(t.Context(), a); return g.OK },
		"Renew":   func(s *Store) bool { return s.Renew(t.Context(), []driver.Renewal{{Claim: a.Claim}})[0] == nil },
		"Release": func(s *Store) bool { return s.Release(t.Context(), []driver.Release{{Claim: a.Claim}})[0] == nil },
	} {
		client := new(loser)
		if call(must.Get(New(client, Postgres, nil))) {
			t.Errorf("%s has succeeded, though its change was undone and could not be made again", name)
		}
		if client.tries != 2 {
			t.Errorf("%s was tried %d times, want 2", name, client.tries)
		}
	}
}
