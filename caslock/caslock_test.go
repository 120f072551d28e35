package caslock_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

func claim(key, id string) driver.Claim {
	return driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: 10 * time.Second}
}

func acquire(t *testing.T, s *caslock.Store, id string, wait bool) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), driver.Ask{Claim: claim("k", id), Wait: wait, Span: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A lossy memory loses answers, or carries swaps out later.
type lossy struct {
	*memory
	lose  int // the answers of the next swaps
	late  int // the next swaps are carried out by catchUp
	stale caslock.Record
	past  bool // reads show stale
	tasks []func()
}

var errLost = errors.New("no answer")

func (l *lossy) Read(ctx context.Context, key string) (caslock.Record, error) {
	if l.past {
		return l.stale, nil
	}
	return l.memory.Read(ctx, key)
}

func (l *lossy) Swap(ctx context.Context, key, old string, data []byte, keep time.Duration) (string, error) {
	if l.late > 0 {
		l.late--
		l.tasks = append(l.tasks, func() { l.memory.Swap(context.Background(), key, old, data, keep) })
		return "", errLost
	}
	next, err := l.memory.Swap(ctx, key, old, data, keep)
	if l.lose > 0 && err == nil {
		l.lose--
		return "", errLost
	}
	return next, err
}

func (l *lossy) catchUp() {
	for _, task := range l.tasks {
		task()
	}
}

// After a swap without an answer, a refusal or "nothing to release" has to be proved: the swap may
// be carried out after the answer, and leave a lock that nobody knows.
func TestLateSwap(t *testing.T) {
	l := &lossy{memory: newMemory(), late: 1}
	s := caslock.New(l, nil)
	defer s.Close()
	if _, err := s.Acquire(t.Context(), driver.Ask{Claim: claim("k", "a"), Span: 1}); !errors.Is(err, errLost) || errors.Is(err, driver.ErrUnwritten) {
		t.Fatalf("a swap without an answer returned %v", err)
	}
	if errs := s.Release(t.Context(), []driver.Release{{Claim: claim("k", "a")}}); errs == nil || !errors.Is(errs[0], driver.ErrLost) {
		t.Errorf("the release returned %v", errs)
	}
	l.catchUp()
	if g := acquire(t, s, "b", false); !g.OK {
		t.Errorf("the late swap was carried out: %+v", g)
	}
}

// A claim that was acquired although the answer was lost is found, and granted once.
func TestLostAnswer(t *testing.T) {
	l := &lossy{memory: newMemory(), lose: 1}
	s := caslock.New(l, nil)
	defer s.Close()
	if _, err := s.Acquire(t.Context(), driver.Ask{Claim: claim("k", "a"), Span: 1}); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	if g := acquire(t, s, "a", false); !g.OK {
		t.Errorf("%+v", g)
	}
	if g := acquire(t, s, "b", false); g.OK {
		t.Errorf("%+v", g)
	}
}

// A read from before a grant does not say that the claim is lost.
func TestStaleRead(t *testing.T) {
	l := &lossy{memory: newMemory()}
	s, other := caslock.New(l, nil), caslock.New(l, nil)
	defer s.Close()
	defer other.Close()
	acquire(t, s, "a", false)
	l.stale, _ = l.memory.Read(t.Context(), "k")
	if errs := s.Release(t.Context(), []driver.Release{{Claim: claim("k", "a")}}); errs != nil {
		t.Fatal(errs)
	}
	acquire(t, s, "b", false)
	acquire(t, other, "c", true) // s has to read again
	l.past = true
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if errs := s.Renew(ctx, []driver.Renewal{{Claim: claim("k", "b")}}); errs == nil || errors.Is(errs[0], driver.ErrLost) || !errors.Is(errs[0], context.DeadlineExceeded) {
		t.Errorf("the renewal returned %v", errs)
	}
	l.past = false
	if errs := s.Renew(t.Context(), []driver.Renewal{{Claim: claim("k", "b")}}); errs != nil {
		t.Errorf("the renewal returned %v", errs)
	}
}

// A release that has lost against a Break says so.
func TestReleaseOfABrokenClaim(t *testing.T) {
	m := newMemory()
	s, operator := caslock.New(m, nil), caslock.New(m, nil)
	defer s.Close()
	defer operator.Close()
	acquire(t, s, "a", false)
	if err := operator.Break(t.Context(), "k", driver.PublicID("a")); err != nil {
		t.Fatal(err)
	}
	if errs := s.Release(t.Context(), []driver.Release{{Claim: claim("k", "a")}}); errs == nil || !errors.Is(errs[0], driver.ErrLost) {
		t.Errorf("the release returned %v", errs)
	}
}

// Requests cost money: a lock costs two swaps, and one read for a new key. A renewal of many claims
// on one key is one swap.
func TestRequests(t *testing.T) {
	m := newMemory()
	s := caslock.New(m, nil)
	defer s.Close()
	for range 10 {
		acquire(t, s, "a", false)
		s.Release(t.Context(), []driver.Release{{Claim: claim("k", "a")}})
	}
	if m.reads != 1 || m.swaps != 20 {
		t.Errorf("ten locks cost %d reads and %d swaps", m.reads, m.swaps)
	}
	m.reads, m.swaps = 0, 0
	var rs []driver.Renewal
	for i := range 20 {
		c := claim("k", fmt.Sprint("reader ", i))
		c.Weight = 1
		if _, err := s.Acquire(t.Context(), driver.Ask{Claim: c, Span: 1}); err != nil {
			t.Fatal(err)
		}
		rs = append(rs, driver.Renewal{Claim: c})
	}
	m.reads, m.swaps = 0, 0
	if errs := s.Renew(t.Context(), rs); errs != nil || m.reads != 0 || m.swaps != 1 {
		t.Errorf("a renewal of 20 claims cost %d reads and %d swaps, %v", m.reads, m.swaps, errs)
	}
}

// A dead waiter whose turn comes blocks the key for its TTL at most, however far back it has
// waited and however long its pauses were.
func TestDeadWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := caslock.New(m, &caslock.Options{Look: time.Minute})
		defer s.Close()
		acquire(t, s, "holder", false)
		if g := acquire(t, s, "dead", true); g.OK || g.Kept != 10*time.Second {
			t.Fatalf("%+v", g)
		}
		s.Release(t.Context(), []driver.Release{{Claim: claim("k", "holder")}})
		began := time.Now()
		for !acquire(t, s, "next", true).OK {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took > 10*time.Second+200*time.Millisecond {
			t.Errorf("a dead waiter blocked the key for %v", took)
		}
	})
}

// A clocked memory has a clock.
type clocked struct {
	*memory
	now time.Time
}

func (c *clocked) Now(context.Context) (time.Time, error) { return c.now, nil }

// Tokens follow the clock of the register, and grow over the removal of a record.
func TestClockOfTheRegister(t *testing.T) {
	c := &clocked{newMemory(), time.Now().Add(1000 * time.Hour)}
	s := caslock.New(c, nil)
	defer s.Close()
	first := acquire(t, s, "a", false)
	if first.Fence != uint64(c.now.UnixMicro()) {
		t.Errorf("token %d at %d", first.Fence, c.now.UnixMicro())
	}
	delete(c.records, "k")
	c.now = c.now.Add(time.Second)
	other := caslock.New(c, nil)
	defer other.Close()
	if second := acquire(t, other, "b", false); second.Fence <= first.Fence {
		t.Errorf("token %d after %d", second.Fence, first.Fence)
	}
}

// A kept memory notes for how long the register has to keep the last record.
type kept struct {
	*memory
	keep time.Duration
}

func (k *kept) Swap(ctx context.Context, key, old string, data []byte, keep time.Duration) (string, error) {
	k.keep = keep
	return k.memory.Swap(ctx, key, old, data, keep)
}

// A token may be ahead of the clock, if a lock over several stores has asked for it. The record
// stays until the clock is beyond the token, so that a new record begins with a larger token.
func TestKeepOfATokenAhead(t *testing.T) {
	k := &kept{memory: newMemory()}
	s := caslock.New(k, nil)
	defer s.Close()
	ask := driver.Ask{Claim: claim("k", "a"), Span: 1, Fence: uint64(time.Now().Add(20 * time.Hour).UnixMicro())}
	if _, err := s.Acquire(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	if errs := s.Release(t.Context(), []driver.Release{{Claim: ask.Claim}}); errs != nil {
		t.Fatal(errs)
	}
	if k.keep < 20*time.Hour {
		t.Errorf("the record is kept for %v", k.keep)
	}
}

// A Watch that is under way while the Store closes follows nothing afterwards.
func TestWatchWhileClosing(t *testing.T) {
	for range 50 {
		p, began, enough := newPushing(), make(chan struct{}), make(chan struct{})
		slow := slowWatch{p, began, enough}
		looked, watched := caslock.New(p.memory, nil), caslock.New(slow, nil)
		looking := make(chan error)
		go func() {
			_, err := looked.Watch(t.Context(), claim("k", "a"), func(driver.Grant) {})
			looking <- err
		}()
		watching := make(chan error)
		go func() {
			_, err := watched.Watch(t.Context(), claim("k", "a"), func(driver.Grant) {})
			watching <- err
		}()
		<-began
		looked.Close()
		watched.Close()
		close(enough)
		<-looking
		if err := <-watching; err == nil {
			t.Fatal("a Watch of a closed Store succeeded")
		}
		if p.followed() {
			t.Fatal("a closed Store follows a key")
		}
	}
}

// A slowWatch answers Watch when it has had enough.
type slowWatch struct {
	*pushing
	began, enough chan struct{}
}

func (s slowWatch) Watch(ctx context.Context, key string, changed func(caslock.Record)) (stop func(), err error) {
	close(s.began)
	<-s.enough
	return s.pushing.Watch(ctx, key, changed)
}

// A record that changes while the register lists may come twice. Keys yields its key once.
func TestKeysOnce(t *testing.T) {
	d := doubled{newMemory()}
	s := caslock.New(d, nil)
	defer s.Close()
	acquire(t, s, "a", false)
	n := 0
	for _, err := range s.Keys(t.Context(), "") {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Errorf("Keys yields the key %d times", n)
	}
}

type doubled struct{ *memory }

func (d doubled) List(ctx context.Context, prefix string) iter.Seq2[caslock.Record, error] {
	return func(yield func(caslock.Record, error) bool) {
		for range 2 {
			for r, err := range d.memory.List(ctx, prefix) {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

// A record that is no record of Holdfast is left alone, and hides no key.
func TestForeignRecord(t *testing.T) {
	m := newMemory()
	m.records["foreign"] = []byte(`{"LockID":"terraform"}`)
	s := caslock.New(m, nil)
	defer s.Close()
	_, err := s.Acquire(t.Context(), driver.Ask{Claim: claim("foreign", "a"), Span: 1})
	if err == nil || errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "not written by holdfast") {
		t.Errorf("a foreign record: %v", err)
	}
	acquire(t, s, "a", false)
	for key, err := range s.Keys(t.Context(), "") {
		if err != nil || key != "k" {
			t.Errorf("Keys yields %q, %v", key, err)
		}
	}
}
