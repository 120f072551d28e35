// Tests of package fence, and of records of package once in a database: neither may
// know the clients of its engines.
package fences

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/sim"
)

func TestOutdatedTokensAreRefused(t *testing.T) {
	each(t, func(e *engine) {
		for i, step := range []struct{ token, highest uint64 }{
			{5, 0}, {5, 0}, {7, 0}, {6, 7}, {5, 7}, {7, 0}, {math.MaxInt64, 0}, {math.MaxInt64 - 1, math.MaxInt64},
		} {
			err := e.check(e.Context(), "account/42", step.token)
			var outdated *fence.OutdatedError
			switch {
			case step.highest == 0 && err != nil:
				e.Errorf("step %d: token %d: %v", i, step.token, err)
			case step.highest != 0 && !errors.As(err, &outdated):
				e.Errorf("step %d: token %d passes: %v", i, step.token, err)
			case step.highest != 0 && *outdated != fence.OutdatedError{Key: "account/42", Token: step.token, Highest: step.highest}:
				e.Errorf("step %d: %+v, want %+v", i, *outdated, step)
			}
		}
	})
}

func TestKeysAreApart(t *testing.T) {
	each(t, func(e *engine) {
		keys := []string{"a", "A", "a ", "a\x00", "a\x00b", "ä", "a\u0308", "🔒", "'", `\`, "%", strings.Repeat("k", 512), strings.Repeat("k", 511)}
		for i, key := range keys {
			e.must(e.check(e.Context(), key, uint64(100-i)))
		}
		for i, key := range keys {
			var outdated *fence.OutdatedError
			if err := e.check(e.Context(), key, 1); !errors.As(err, &outdated) || outdated.Highest != uint64(100-i) {
				e.Errorf("key %.20q: %v, want its own %d", key, err, 100-i)
			}
		}
	})
}

func TestRollbackForgets(t *testing.T) {
	each(t, func(e *engine) {
		e.must(e.check(e.Context(), "known", 7))
		for _, key := range []string{"known", "new"} {
			tx := e.begin()
			e.must(e.fences.Check(e.Context(), tx, key, 9))
			e.must(tx.Rollback())
			if err := e.check(e.Context(), key, 8); err != nil {
				e.Errorf("after 9 was rolled back, 8 does not pass: %v", err)
			}
		}
	})
}

// The tokens of those who write appear in the order of their writes, although
// they come at the same time and in any order.
func TestCheckAndWriteAreOne(t *testing.T) {
	each(t, func(e *engine) {
		const writers, times = 8, 40
		journal := strings.ToLower(e.fences.Table) + "_journal"
		_, err := e.db.ExecContext(e.Context(), `CREATE TABLE `+journal+` (place bigint NOT NULL, token bigint NOT NULL)`)
		e.must(err)
		seed := sim.Seed(e)
		var wg sync.WaitGroup
		for writer := range uint64(writers) {
			random := rand.New(rand.NewPCG(seed, writer))
			wg.Go(func() {
				for token := range uint64(times) {
					token += 1 + random.Uint64N(3)
					err := e.check(e.Context(), "raced for", token, fmt.Sprintf(
						`INSERT INTO %s SELECT count(*), %d FROM %[1]s`, journal, token))
					if err != nil && !errors.Is(err, fence.ErrOutdated) {
						e.Error(err)
					}
				}
			})
		}
		wg.Wait()
		var written, unordered, doubled int
		e.must(e.db.QueryRowContext(e.Context(), `SELECT count(*), count(*) - count(DISTINCT place) FROM `+journal).Scan(&written, &doubled))
		e.must(e.db.QueryRowContext(e.Context(), `SELECT count(*) FROM `+journal+` a JOIN `+journal+` b ON b.place > a.place AND b.token < a.token`).Scan(&unordered))
		if written == 0 || unordered > 0 || doubled > 0 {
			e.Errorf("%d writes, %d pairs out of order, %d at the same time", written, unordered, doubled)
		}
	})
}

// A transaction that has looked at the table before goes by what is there now,
// also where it is otherwise shown what was there then.
func TestSnapshotIsNotBelieved(t *testing.T) {
	each(t, func(e *engine) {
		if e.fences.Dialect == dialect.SQLite {
			return // one writer at a time: nothing changes during a transaction that writes
		}
		e.must(e.check(e.Context(), "key", 5))
		tx := e.begin()
		var rows int
		e.must(tx.QueryRowContext(e.Context(), `SELECT count(*) FROM `+e.quoted()).Scan(&rows))
		e.must(e.check(e.Context(), "key", 7))
		if err := e.fences.Check(e.Context(), tx, "key", 6); !errors.Is(err, fence.ErrOutdated) {
			e.Errorf("6 after 7: %v, want ErrOutdated", err)
		}
	})
}

func TestCreateByManyAtOnce(t *testing.T) {
	each(t, func(e *engine) {
		e.fences.Table += "_again"
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := e.fences.Create(e.Context(), e.db); err != nil {
					e.Error(err)
				}
			})
		}
		wg.Wait()
		e.must(e.check(e.Context(), "key", 1))
	})
}

func TestMissingTableIsNamed(t *testing.T) {
	each(t, func(e *engine) {
		e.fences.Table = "not_there"
		if err := e.check(e.Context(), "key", 1); err == nil || !strings.Contains(err.Error(), "not_there") {
			e.Errorf("%v, want it to name the table", err)
		}
	})
}

func TestTableInSchema(t *testing.T) {
	e := start(t, dialect.Postgres)
	_, err := e.db.ExecContext(t.Context(), `CREATE SCHEMA "App"`)
	e.must(err)
	e.fences.Table = "App.Fences"
	e.must(e.fences.Create(t.Context(), e.db))
	e.must(e.check(t.Context(), "key", 2))
	if err := e.check(t.Context(), "key", 1); !errors.Is(err, fence.ErrOutdated) {
		t.Errorf("%v, want ErrOutdated", err)
	}
}
