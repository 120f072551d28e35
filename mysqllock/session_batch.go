package mysqllock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/internal/backoff"
)

// maxBatch is the number of locks of one round trip.
const maxBatch = 64

// Claims wait until the batch is as large as the batch before. They wait while requests come
// within gatherPause, and for gatherTime at most. A commit takes longer. Callers answered
// together request their next locks together, so most locks share a commit.
const (
	gatherPause = 200 * time.Microsecond
	gatherTime  = time.Millisecond
)

// serve serves requests that have come together: releases in one round trip, then claims in
// one round trip and one commit. The change of order does no harm: a lock is released only
// after the answer to its Try, and a Try with a longer limit comes after its Ping.
func (c *sessionConn) serve(rs []request) {
	var tries []request
	for begin := time.Now(); ; rs = c.more(gatherPause) {
		tries = append(tries, c.serveNow(rs)...)
		if len(rs) == 0 || len(tries) == 0 || len(tries) >= c.crowd || time.Since(begin) >= gatherTime {
			break
		}
	}
	if len(tries) > 0 {
		c.crowd = len(tries)
	}
	for some := range slices.Chunk(tries, maxBatch) {
		c.pings()
		c.tryAll(some)
	}
}

// pings serves the pings received while claims waited for rows, so that no held lock is lost
// for want of a ping.
func (c *sessionConn) pings() {
	var pings []request
	c.mu.Lock()
	c.asked = slices.DeleteFunc(c.asked, func(r request) bool {
		if r.kind == pinging {
			pings = append(pings, r)
		}
		return r.kind == pinging
	})
	c.mu.Unlock()
	c.serveNow(pings)
}

// more returns the requests received within a time.
func (c *sessionConn) more(within time.Duration) []request {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-c.asks:
	case <-timer.C:
	case <-c.life.Done():
	}
	return c.take(false)
}

// serveNow serves the requests without a commit, and returns the claims.
func (c *sessionConn) serveNow(rs []request) (tries []request) {
	var frees []request
	for _, r := range rs {
		switch r.kind {
		case pinging:
			err := context.Cause(c.life)
			if err == nil {
				err = c.pinged(r.ping)
				c.endIf(err)
			}
			r.done(0, c.reason(err))
		case freeing:
			frees = append(frees, r)
		case trying:
			tries = append(tries, r)
		}
	}
	for some := range slices.Chunk(frees, maxBatch) {
		c.free(some)
	}
	return tries
}

// free releases locks.
func (c *sessionConn) free(rs []request) {
	var text strings.Builder
	for i, r := range rs {
		fmt.Fprintf(&text, "%s COALESCE(RELEASE_LOCK('%s'), 0), IS_USED_LOCK('%s') IS NOT NULL, COALESCE(IS_USED_LOCK('%s'), 0), COALESCE(RELEASE_LOCK('%s'), 0)",
			separator(i, "SELECT"), r.name, mark(r.name), turn(r.name), door(r.name))
	}
	answers := make([]int64, 4*len(rs)) // for every lock: was held, has a mark, who has the turn, had a door
	err := context.Cause(c.life)
	if err == nil {
		err = c.conn.QueryRowContext(c.life, text.String()).Scan(pointers(answers)...)
		c.endIf(err)
	}
	unexpected := false
	for i, r := range rs {
		held, marked, turn := answers[4*i] == 1, answers[4*i+1] == 1, answers[4*i+2]
		switch {
		case turn != 0 && (marked || !c.waits.own(turn)): // A waiter of this process alone needs no break.
			c.brief.Released(r.name)
		case marked:
			c.resting.Released(r.name)
		}
		failed := err
		if failed == nil && !held {
			failed, unexpected = errNotHeld, true
		}
		r.done(0, c.reason(failed))
	}
	if unexpected {
		c.endIf(errNotHeld)
	}
}

// tryAll answers claims.
func (c *sessionConn) tryAll(rs []request) {
	var asked []request
	for _, r := range rs {
		switch err := context.Cause(c.life); {
		case err != nil:
			r.done(0, err)
		case c.resting.Resting(r.name) || c.brief.Resting(r.name):
			r.done(0, backoff.ErrResting)
		default:
			asked = append(asked, r)
		}
	}
	if len(asked) > 1 {
		// Alone, a claim would wait as long again for the row.
		if tokens, err := c.tryTogether(asked); err == nil || locked(err) {
			for i, r := range asked {
				r.done(tokens[i], c.reason(err))
			}
			return
		}
	}
	// One by one, so that every claim gets its own error.
	for _, r := range asked {
		c.pings()
		token, err := c.try(r)
		r.done(token, c.reason(err))
	}
}

// locked reports whether a statement has waited in vain for a row or table that a different
// connection has locked.
func locked(err error) bool { return numbered(err, lockWait) }

// deadlocked reports whether the server has ended a statement because of a deadlock.
func deadlocked(err error) bool { return numbered(err, deadlock) }

const (
	lockWait = 1205 // lock wait timeout exceeded
	deadlock = 1213 // deadlock found
)

func numbered(err error, number uint16) bool {
	e := (*mysql.MySQLError)(nil)
	return errors.As(err, &e) && e.Number == number
}

// tryTogether is try for several locks, with one transaction for the tokens. In an unusual
// case tryTogether takes nothing, and returns an error and zero tokens.
func (c *sessionConn) tryTogether(rs []request) (tokens []uint64, err error) {
	rows := make(map[int]int) // locks by the number of their row
	for _, r := range rs {
		rows[row(r.name)]++
	}
	answers := make([]int, 1+2*len(rs)) // changed rows; for every lock: is taken, has a changed mark
	highest, err := c.draw(rs, rows, answers)
	tokens = make([]uint64, len(rs))
	changed := 0
	for i, r := range rs {
		taken := answers[1+2*i] == 1
		if err == nil {
			c.noteMark(r.name, taken, answers[2+2*i] == 1)
		}
		if taken {
			id := row(r.name)
			tokens[i] = highest[id]
			highest[id] -= span
			changed = len(rows)
		}
	}
	if err == nil && answers[0] == changed {
		return tokens, nil
	}
	var text strings.Builder
	for i, r := range rs {
		fmt.Fprintf(&text, "%s RELEASE_LOCK('%s'), RELEASE_LOCK('%s')", separator(i, "ROLLBACK; DO"), r.name, door(r.name))
	}
	_, failed := c.conn.ExecContext(c.life, text.String())
	c.endIf(failed)
	return make([]uint64, len(rs)), cmp.Or(err, errUnusual)
}

var errUnusual = errors.New("a row that gives tokens is missing or used up")

// draw takes locks, draws tokens, and returns the highest token by row. Every row gives
// tokens for as many locks as the row with the most locks. A row with refused locks gives
// too many tokens, which does no harm. If every lock is refused, draw writes nothing.
func (c *sessionConn) draw(rs []request, rows map[int]int, answers []int) (highest map[int]uint64, err error) {
	var take, sum, answer, ids strings.Builder
	most := 0
	for id, n := range rows {
		fmt.Fprintf(&ids, "%s %d", separator(ids.Len(), ""), id)
		most = max(most, n)
	}
	for i, r := range rs {
		taken := fmt.Sprint("@taken", i)
		fmt.Fprintf(&take, "%s %s = COALESCE(GET_LOCK('%s', 0), 0)", separator(i, "SET"), taken, r.name)
		fmt.Fprintf(&sum, " + %s", taken)
		fmt.Fprintf(&answer, ", %s, %s", taken, c.marking(r, taken))
	}
	// A statement that reads a variable must be later than the statement that sets the variable.
	result, err := c.conn.QueryContext(c.life, fmt.Sprintf(`%[1]s; SET @all = 0%[2]s; START TRANSACTION;
		UPDATE %[3]s SET fence = GREATEST(fence + %[4]d, FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000))
			WHERE id IN (%[5]s) AND @all > 0 AND fence BETWEEN 0 AND %[6]d;
		SET @drawn = ROW_COUNT();
		SELECT id, fence FROM %[3]s WHERE id IN (%[5]s);
		COMMIT;
		SELECT @drawn%[7]s`,
		take.String(), sum.String(), c.table, span*most, ids.String(), 1<<53-span*(most+1), answer.String()))
	if err != nil {
		return nil, err
	}
	defer result.Close()
	highest = make(map[int]uint64)
	for result.Next() {
		var id int
		var fence int64
		if err := result.Scan(&id, &fence); err != nil {
			return nil, err
		}
		highest[id] = uint64(fence)
	}
	if !result.NextResultSet() || !result.Next() {
		return nil, errors.Join(result.Err(), errNoAnswer)
	}
	return highest, errors.Join(result.Scan(pointers(answers)...), result.Close(), result.Err())
}

var errNoAnswer = errors.New("the server has not answered all statements")

// separator stands before part i of a list.
func separator(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}

func pointers[T any](values []T) []any {
	list := make([]any, len(values))
	for i := range values {
		list[i] = &values[i]
	}
	return list
}
