package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/detached"
	"github.com/holdfast-go/holdfast/internal/must"
)

// A slow server answers when it is told to, with no rows, or at once if it is about
// another key. Its client breaks the connection of a statement that is cut short.
type slow struct {
	opened, sent atomic.Int64
	answers      chan struct{}
}

func (s *slow) Connect(context.Context) (sqldriver.Conn, error) {
	s.opened.Add(1)
	return &slowConn{server: s}, nil
}

func (s *slow) Driver() sqldriver.Driver { return nil }

type slowConn struct {
	sqldriver.Conn
	server *slow
	broken bool
}

func (c *slowConn) QueryContext(ctx context.Context, _ string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	c.server.sent.Add(1)
	if slices.ContainsFunc(args, func(arg sqldriver.NamedValue) bool { return arg.Value == "other" }) {
		return noRows{}, nil
	}
	select {
	case <-c.server.answers:
		return noRows{}, nil
	case <-ctx.Done():
		c.broken = true
		return nil, ctx.Err()
	}
}

func (c *slowConn) IsValid() bool { return !c.broken }
func (c *slowConn) Close() error  { return nil }

type noRows struct{}

func (noRows) Columns() []string            { return []string{"fence"} }
func (noRows) Close() error                 { return nil }
func (noRows) Next([]sqldriver.Value) error { return io.EOF }

// A scene is a slow server, and a store on a database of one connection.
type scene struct {
	*testing.T
	*slow
	db *sql.DB
	*Store
}

func onSlow(t *testing.T, test func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		server := &slow{answers: make(chan struct{})}
		db := sql.OpenDB(server)
		db.SetMaxOpenConns(1)
		s := &scene{T: t, slow: server, db: db, Store: must.Get(New(Postgres.Client(db), Postgres, nil))}
		test(s)
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("Close took %v with nothing under way", took)
		}
		db.Close()
	})
}

// leave asks, and gives up after a millisecond. It reports whether the store may know the
// claim.
func (s *scene) leave(id string) (asked bool) {
	s.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.Context(), time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx, exclusive(id))
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("%s: %v, want that it has ended", id, err)
	}
	if took := time.Since(began); took != time.Millisecond {
		s.Errorf("%s gave up after 1ms, and was let go after %v", id, took)
	}
	return !errors.Is(err, driver.ErrUnwritten)
}

// counts checks how many connections were opened, and statements sent.
func (s *scene) counts(opened, sent int64) {
	s.Helper()
	synctest.Wait()
	if o, n := s.opened.Load(), s.sent.Load(); o != opened || n != sent {
		s.Errorf("%d connections and %d statements, want %d and %d", o, n, opened, sent)
	}
}

// A caller that leaves gives up the unsent parts: places before the connection, and the
// second statement. A sent statement is answered, so the connection stays.
func TestLeave(t *testing.T) {
	onSlow(t, func(s *scene) {
		for i := range 10 {
			if asked := s.leave(fmt.Sprint(i)); asked != (i == 0) {
				t.Errorf("the store may know claim %d: %v", i, asked)
			}
		}
		s.counts(1, 1)
		s.answers <- struct{}{}
		s.counts(1, 1)
		s.leave("next")
		s.counts(1, 2)
		s.answers <- struct{}{}
		synctest.Wait()
	})
}

// A server that hangs keeps the connection for Grace.
func TestLeaveWhatHangs(t *testing.T) {
	onSlow(t, func(s *scene) {
		s.leave("a")
		time.Sleep(detached.Grace)
		s.leave("b")
		s.counts(2, 2)
		s.answers <- struct{}{}
		synctest.Wait()
	})
}

// The connection is in use for something else.
func TestLeaveOthers(t *testing.T) {
	onSlow(t, func(s *scene) {
		conn, err := s.db.Conn(s.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			s.leave(fmt.Sprint(i))
		}
		conn.Close()
		s.counts(1, 0)
	})
}

// Callers that have left, and the releases for them, keep all connections but one, however
// many connections there are now. A renewal or a release of a different key need not wait.
func TestLeaveOne(t *testing.T) {
	onSlow(t, func(s *scene) {
		late := []driver.Release{{Claim: exclusive("gone").Claim, Late: true}}
		other := exclusive("holder").Claim
		other.Key = "other"
		for _, most := range []int{4, 2, 3} {
			s.db.SetMaxOpenConns(most)
			for i := range 10 {
				s.leave(fmt.Sprint(i))
			}
			ctx, cancel := context.WithTimeout(s.Context(), detached.Grace/2)
			released := make(chan []error)
			go func() { released <- s.Release(ctx, late) }()
			synctest.Wait()
			began := time.Now()
			s.Renew(ctx, []driver.Renewal{{Claim: other}})
			s.Release(ctx, []driver.Release{{Claim: other}})
			if took := time.Since(began); took > 0 {
				t.Errorf("of %d connections none is left for %v", most, took)
			}
			if err := (<-released)[0]; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a server that is silent has released a claim: %v", err)
			}
			cancel()
			time.Sleep(detached.Grace)
		}
	})
}

// A request for a claim with an unanswered Acquire waits for the answer, and then asks.
func TestLeaveToTheNext(t *testing.T) {
	onSlow(t, func(s *scene) {
		s.db.SetMaxOpenConns(2)
		s.leave("id")
		asked := make(chan error)
		go func() {
			_, err := s.Acquire(s.Context(), exclusive("id"))
			asked <- err
		}()
		s.counts(1, 1)
		s.answers <- struct{}{} // the first, whose second statement is not sent
		s.counts(1, 2)
		s.answers <- struct{}{}
		s.answers <- struct{}{}
		if err := <-asked; err == nil {
			t.Error("a server that has returned no row has granted a claim")
		}
		s.counts(1, 3)
	})
}

// Close sends nothing more, and waits for what was sent.
func TestCloseWhileSent(t *testing.T) {
	onSlow(t, func(s *scene) {
		s.leave("gone")
		away := make(chan error)
		go func() {
			_, err := s.Acquire(s.Context(), exclusive("patient"))
			away <- err
		}()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		if err := <-away; !errors.Is(err, detached.ErrClosed) {
			t.Errorf("who waits is told %v", err)
		}
		select {
		case <-closed:
			t.Error("closed before the answer")
		case s.answers <- struct{}{}:
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if _, err := s.Acquire(s.Context(), exclusive("late")); !errors.Is(err, detached.ErrClosed) {
			t.Errorf("who comes later is told %v", err)
		}
		s.counts(1, 1)
	})
}

// Held is the client of a table in which somebody holds the key. It answers its writes
// when it is told to.
type held struct {
	answers chan struct{}
	spent   bool // nobody holds the key, which has no tokens left
}

func (h held) Query(ctx context.Context, st Statement, each func(Scan) error) error {
	if !strings.HasPrefix(st.Text, "SELECT") { // not to load, but to take
		return nil
	}
	return each(func(dest ...any) error {
		if h.spent {
			return h.row(&book.Book{Floor: 1 << 53}, dest)
		}
		b := new(book.Book)
		if _, err := b.Acquire(at(0), exclusive("holder"), ""); err != nil {
			return err
		}
		return h.row(b, dest)
	})
}

// row makes the row that is read that of a book.
func (held) row(b *book.Book, dest []any) error {
	var r row
	err := r.fill(b, at(0).Now)
	now, number := micros(at(0).Now), func(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: true} }
	*dest[0].(*int64), *dest[1].(*int64) = now, 1
	for i, n := range []int64{r.fence, 1, format, r.fence} {
		*dest[2+i].(*sql.NullInt64) = number(n)
	}
	*dest[6].(*sql.NullString) = sql.NullString{String: r.sole, Valid: true}
	*dest[7].(*sql.NullInt64), *dest[8].(*sql.NullInt64) = number(r.since), number(r.until)
	*dest[9].(*sql.NullString) = sql.NullString{String: r.claims, Valid: true}
	return err
}

func (h held) Exec(context.Context, Statement) (Result, error) {
	<-h.answers
	return Result{Rows: 1}, nil
}

func (h held) Conns() int   { return 0 }
func (h held) Close() error { return nil }

// A claim that could not be taken at once has changed nothing, which the row tells.
func TestTakeChangesNothing(t *testing.T) {
	s := must.Get(New(held{spent: true}, Postgres, nil))
	defer s.Close()
	a := exclusive("id")
	a.Wait = false
	if _, err := s.Acquire(t.Context(), a); !errors.Is(err, driver.ErrInvalid) || !errors.Is(err, driver.ErrUnwritten) {
		t.Errorf("%v, want that there are no tokens left, and that nothing was written", err)
	}
}

// An answer that comes when the claim has been released is not remembered.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := held{answers: make(chan struct{})}
		s := must.Get(New(client, Postgres, nil))
		known := func() (n int) {
			s.waiting.Range(func(any, any) bool { n++; return true })
			return n
		}
		go func() { client.answers <- struct{}{} }()
		if g, err := s.Acquire(t.Context(), exclusive("stays")); g.OK || err != nil || known() != 1 {
			t.Errorf("%+v, %v; %d are known to wait, want 1", g, err, known())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := s.Acquire(ctx, exclusive("leaves")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		released := make(chan []error)
		go func() {
			released <- s.Release(t.Context(), []driver.Release{
				{Claim: exclusive("leaves").Claim, Late: true},
				{Claim: exclusive("stays").Claim, Late: true},
			})
		}()
		synctest.Wait()
		close(client.answers)
		<-released
		s.Close()
		if n := known(); n > 0 {
			t.Errorf("%d are still known to wait", n)
		}
	})
}
