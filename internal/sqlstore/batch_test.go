package sqlstore

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

// A rejoiner is a client of a server without RETURNING with two keys. When the first renewal
// comes, a claim waits for the key b. Before the next statement arrives, a late write of an
// earlier call leaves the claim of b alone again, with an older end, and the answer takes a
// while.
type rejoiner struct {
	untils map[string]time.Time // of the rows
	late   time.Time            // the end of b by the late write
	alone  bool                 // the late write has come
}

// errBusy ends what the test does not need.
var errBusy = errors.New("the server is busy")

func (r *rejoiner) Exec(_ context.Context, st Statement) (n Result, err error) {
	if !strings.Contains(st.Text, "sole IN") {
		return n, errBusy
	}
	for key := range r.untils {
		if slices.Contains(st.Args, any(key)) && (key == "a" || r.alone) {
			r.untils[key] = time.Now().Add(3 * time.Second)
			n.Rows++
		}
	}
	return n, nil
}

func (r *rejoiner) Query(_ context.Context, st Statement, each func(Scan) error) error {
	if !strings.Contains(st.Text, "sole IN") {
		return errBusy
	}
	r.alone, r.untils["b"] = true, r.late
	read := time.Now()
	time.Sleep(200 * time.Millisecond)
	for key, until := range r.untils {
		err := each(func(dest ...any) error {
			*dest[0].(*string) = key
			if len(dest) > 1 {
				*dest[1].(*int64) = until.Sub(read).Microseconds()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *rejoiner) Conns() int   { return 0 }
func (r *rejoiner) Close() error { return nil }

// A renewal that succeeds lets the claim stand for its TTL, also if a write of an earlier call
// comes between the statements.
func TestRenewedClaimsStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &rejoiner{untils: map[string]time.Time{"a": began, "b": began}, late: began.Add(2900 * time.Millisecond)}
		s := must.Get(New(r, MySQL, nil))
		var rs []driver.Renewal
		for key := range r.untils {
			a := exclusive(key)
			a.Key, a.TTL = key, 3*time.Second
			rs = append(rs, driver.Renewal{Claim: a.Claim})
		}
		for i, err := range s.Renew(t.Context(), rs) {
			if left := r.untils[rs[i].Key].Sub(began); err == nil && left < rs[i].TTL {
				t.Errorf("the renewal of %s succeeded, and the claim stands for %v from the call on, want %v", rs[i].Key, left, rs[i].TTL)
			} else if err != nil && rs[i].Key == "a" {
				t.Errorf("the renewal of a: %v", err)
			}
		}
	})
}

// A warden is a client of SQL Server with a locked row. All other rows have a sole claim.
type warden struct{ locked []byte }

var waits = regexp.MustCompile(`SET LOCK_TIMEOUT (\d+)`)

func (w *warden) Query(ctx context.Context, st Statement, each func(Scan) error) error {
	names := make(map[string]bool)
	for _, arg := range st.Args {
		if name, ok := arg.([]byte); ok && string(name) != "the id" {
			names[string(name)] = true
		}
	}
	if names[string(w.locked)] {
		all := waits.FindAllStringSubmatch(st.Text, -1)
		limit, err := strconv.Atoi(all[len(all)-1][1])
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(limit) * time.Millisecond) // the statement runs to its end
		return errors.Join(ctx.Err(), numbered{1222, "lock request time out period exceeded"})
	}
	time.Sleep(time.Millisecond)
	if err := ctx.Err(); err != nil {
		return err
	}
	return each(func(dest ...any) error {
		*dest[0].(*int64) = int64(len(names))
		return nil
	})
}

func (w *warden) Exec(context.Context, Statement) (Result, error) { return Result{}, errBusy }
func (w *warden) Conns() int                                      { return 0 }
func (w *warden) Close() error                                    { return nil }

// A locked row costs the other claims of a batch little of the time that the engine gives a
// renewal, which is a sixth of the TTL.
func TestLockedRowHoldsUpNoOtherRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, n = 2 * time.Second, 250
		s := must.Get(New(&warden{locked: []byte{n / 3}}, SQLServer, nil))
		var rs []driver.Renewal
		for i := range byte(n) {
			a := exclusive(string([]byte{i + 1}))
			a.Key, a.ID, a.TTL = string([]byte{i + 1}), "the id", ttl
			rs = append(rs, driver.Renewal{Claim: a.Claim})
		}
		ctx, cancel := context.WithTimeout(t.Context(), ttl/6)
		defer cancel()
		for _, err := range errorsOf(s.Renew(ctx, rs), n/3-1) {
			t.Fatalf("a renewal beside the locked row: %v", err)
		}
	})
}

// errorsOf returns the errors of all but one.
func errorsOf(all []error, but int) (errs []error) {
	for i, err := range all {
		if err != nil && i != but {
			errs = append(errs, err)
		}
	}
	return errs
}
