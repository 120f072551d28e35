package once

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// FinishTx remembers the result of an effect in the caller's transaction. The result is
// remembered when tx commits, together with the changes of the effect. The effect must
// have begun with s as its records, and tx must belong to the same database. Other
// callers of the key wait until tx has ended, for at most ten seconds.
//
//	effect, err := effects.Begin(ctx, key, "")
//	// As always; then, in a transaction, the effect, and:
//	if err := records.FinishTx(ctx, tx, effect, result); err != nil {
//		return err // and roll back
//	}
//	return tx.Commit()
//
// After every error, roll tx back. If the error matches [fence.ErrOutdated], a later
// owner has begun since the lock was lost. If Commit returns an error, call Begin for
// the key again to learn whether the effect was done.
func (s *SQL) FinishTx(ctx context.Context, tx fence.Tx, e *Effect, result []byte) error {
	return s.finishIn(e, result, func() error { return s.finish(ctx, tx, e.key, e.token, result, e.retention) })
}

// FinishRow is [SQL.FinishTx] for Postgres clients other than database/sql. The
// function query runs a statement in the caller's transaction and returns its row.
//
//	err := records.FinishRow(effect, result, func(query string, args ...any) fence.Row {
//		return tx.QueryRow(ctx, query, args...) // with pgx
//	})
func (s *SQL) FinishRow(e *Effect, result []byte, query func(query string, args ...any) fence.Row) error {
	return s.finishIn(e, result, func() error {
		st, err := s.statements()
		if err != nil {
			return err
		}
		if st.finishRow == "" {
			return fmt.Errorf("%v needs more than statements with a row: use FinishTx", s.Dialect)
		}
		var changed, found, state, token int64
		row := query(st.finishRow, notNull(result), e.retention.Microseconds(), []byte(e.key), int64(e.token))
		if err := row.Scan(&changed); err != nil || changed > 0 {
			return err
		}
		if err := query(st.judgeRow, []byte(e.key)).Scan(&found, &state, &token); err != nil {
			return err
		}
		if err := newer.Check(e.key, found, rowFormat, newer.Stays); err != nil {
			return err
		}
		_, _, err = Record{State: State(state), Token: uint64(token)}.AfterFinish(e.key, e.token, result)
		return err
	})
}

// finishIn finishes an effect in a transaction, by calling finish.
func (s *SQL) finishIn(e *Effect, result []byte, finish func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.records != Records(s) {
		return e.failed("finish", errRecords)
	}
	if err := e.settleLocked(result); err != nil {
		return e.failed("finish", err)
	}
	if err := finish(); err != nil {
		return e.failed("finish", errors.Join(err, e.lock.Err()))
	}
	return nil
}

// DoTx is [Runner.Do] with a transaction for fn. Records must be a [*SQL]. The changes of fn
// in tx and the result commit together, or neither does. A crash, a pause or a broken
// connection therefore never makes the changes happen twice. fn must neither commit nor
// roll back. An error of fn, or of the commit, rolls back, and the next caller may try.
//
// The transaction keeps a connection while fn runs. If the locks use the same DB, allow
// more connections than effects run concurrently. A lock is lost if no connection is
// left to renew it.
func (r Runner) DoTx(ctx context.Context, key string, fn func(ctx context.Context, tx *sql.Tx) ([]byte, error), opts ...holdfast.LockOption) (result []byte, err error) {
	s, ok := r.Records.(*SQL)
	if !ok {
		return nil, (&Effect{key: key}).failed("begin", &inputError{holdfast.ErrInvalid, fmt.Errorf("DoTx needs a *once.SQL as Runner.Records, not a %T", r.Records)})
	}
	e, err := r.Begin(ctx, key, "", opts...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if result, done := e.Result(); done {
		return result, nil
	}
	result, err = s.transact(e.Context(ctx), e, fn)
	if err != nil && e.settled {
		return s.outcome(ctx, e, err)
	}
	return result, err
}

func (s *SQL) transact(ctx context.Context, e *Effect, fn func(ctx context.Context, tx *sql.Tx) ([]byte, error)) ([]byte, error) {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return nil, e.failed("begin a transaction for", err)
	}
	defer func() { _ = tx.Rollback() }()
	result, err := fn(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := s.FinishTx(ctx, tx, e, result); err != nil {
		return nil, err
	}
	return result, e.failed("commit", tx.Commit())
}

// outcome finds out whether a failed commit has taken effect. Begin with the same token
// waits until the transaction has committed or rolled back.
func (s *SQL) outcome(ctx context.Context, e *Effect, why error) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var r Record
	err := persist(ctx, func(ctx context.Context) (err error) {
		r, err = s.Begin(ctx, e.key, e.token, "", max(e.retention, unfinished))
		return err
	})
	if err == nil && r.State == Done {
		return r.Result, nil
	}
	return nil, errors.Join(why, e.failed("commit", err), e.lock.Err())
}
