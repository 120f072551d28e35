package doorbell

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A clockwork is a server of which only the times matter. It answers 1 to every query.
type clockwork struct {
	silent atomic.Bool // new connections get no greeting
	down   atomic.Bool // queries fail
	rings  atomic.Int64
}

func (s *clockwork) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if s.silent.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &clockConn{server: s}, nil
}

func (s *clockwork) Driver() sqldriver.Driver { return nil }

type clockConn struct {
	sqldriver.Conn
	server *clockwork
}

func (c *clockConn) QueryContext(_ context.Context, query string, _ []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if c.server.down.Load() {
		return nil, errors.New("the connection has ended")
	}
	if query == "ring" {
		c.server.rings.Add(1)
	}
	return new(one), nil
}

func (*clockConn) Close() error { return nil }

// A one is a row with the number 1.
type one struct{ read bool }

func (*one) Columns() []string { return []string{"1"} }
func (*one) Close() error      { return nil }

func (o *one) Next(dest []sqldriver.Value) error {
	if o.read {
		return io.EOF
	}
	o.read, dest[0] = true, int64(1)
	return nil
}

// onClockwork runs a test of a bell in virtual time.
func onClockwork(t *testing.T, test func(t *testing.T, s *clockwork, b *Bell)) {
	synctest.Test(t, func(t *testing.T) {
		s := new(clockwork)
		b := New(sql.OpenDB(s), Locks{Hold: "hold", Ring: "ring", Held: "held", Release: "release", Wait: "wait"}, nil)
		defer b.Close()
		test(t, s, b)
	})
}

// after returns how long it takes until the condition holds, within an hour.
func after(t *testing.T, holds func() bool) time.Duration {
	begin := time.Now()
	for synctest.Wait(); !holds(); synctest.Wait() {
		if time.Since(begin) > time.Hour {
			t.Fatal("the condition does not hold after an hour")
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(begin)
}

// TestHangWaitsOnce: the wait for a server that does not answer keeps one caller, and no
// other.
func TestHangWaitsOnce(t *testing.T) {
	onClockwork(t, func(t *testing.T, s *clockwork, b *Bell) {
		s.silent.Store(true)
		waited := make(chan time.Duration)
		hang := func() {
			begin := time.Now()
			b.Hang(t.Context(), time.Second)
			waited <- time.Since(begin)
		}
		go hang()
		synctest.Wait()
		go hang()
		if second, first := <-waited, <-waited; first != time.Second || second != 0 {
			t.Errorf("the first caller waited %v, the second %v, want 1s and 0s", first, second)
		}
	})
}

// TestCloseAgain: a second Close returns, like that of every store.
func TestCloseAgain(t *testing.T) {
	onClockwork(t, func(t *testing.T, _ *clockwork, b *Bell) {
		b.Hang(t.Context(), time.Second)
		if err := errors.Join(b.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestBellConnectsAgain: a server that accepts connections and sends no greeting keeps the
// bell for a few seconds only.
func TestBellConnectsAgain(t *testing.T) {
	onClockwork(t, func(t *testing.T, s *clockwork, b *Bell) {
		s.silent.Store(true)
		b.Hang(t.Context(), time.Second)
		s.silent.Store(false)
		if took := after(t, func() bool { return b.To() != "" }); took > limit+pause {
			t.Errorf("the bell was held after %v, want %v at most", took, limit+pause)
		}
	})
}

// TestBellComesBack: the end of the bell's connection is noticed though nobody rings. The
// pause before the next attempt does not grow as long as the attempts succeed.
func TestBellComesBack(t *testing.T) {
	onClockwork(t, func(t *testing.T, s *clockwork, b *Bell) {
		b.Hang(t.Context(), time.Second)
		for range 10 {
			s.down.Store(true)
			if took := after(t, func() bool { return b.To() == "" }); took > idle {
				t.Errorf("the end was noticed after %v, want %v at most", took, idle)
			}
			s.down.Store(false)
			if took := after(t, func() bool { return b.To() != "" }); took > pause {
				t.Errorf("the bell was held again after %v, want %v at most", took, pause)
			}
		}
	})
}

// TestBellRingsAgain: a second ring follows the last ring, for a waiter that had compared its
// row before and waited only after.
func TestBellRingsAgain(t *testing.T) {
	onClockwork(t, func(t *testing.T, s *clockwork, b *Bell) {
		b.Hang(t.Context(), time.Second)
		for range 3 {
			b.Ring()
			time.Sleep(ringAgain / 2)
		}
		synctest.Wait()
		if n := s.rings.Load(); n != 3 {
			t.Errorf("three rings in a row rang %d times, want 3", n)
		}
		time.Sleep(idle / 2)
		synctest.Wait()
		if n := s.rings.Load(); n != 4 {
			t.Errorf("three rings rang %d times in the end, want 4", n)
		}
	})
}
