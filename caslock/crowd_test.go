package caslock_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// After the death of a whole crowd, the claims behind the crowd wait for as long as the
// longest place of the crowd lasts, not for one TTL after the other.
func TestDeadCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		crowd, living := caslock.New(m, nil), caslock.New(m, nil)
		defer crowd.Close()
		defer living.Close()
		acquire(t, crowd, "holder", false)
		last := driver.Grant{}
		for i := range 40 {
			last = acquire(t, crowd, fmt.Sprint("dead ", i), true)
		}
		if last.Kept != 80*time.Second {
			t.Errorf("the last place lasts for %v, want 8 TTLs", last.Kept)
		}
		if g := acquire(t, living, "living", true); g.Kept < 10*time.Second {
			t.Fatalf("%+v", g)
		}
		crowd.Release(t.Context(), []driver.Release{{Claim: claim("k", "holder")}})
		began := time.Now()
		for !acquire(t, living, "living", true).OK {
			time.Sleep(time.Second)
		}
		most := last.Kept + last.Kept/64 + claim("k", "").Alive() + time.Second
		if took := time.Since(began); took > most {
			t.Errorf("a dead crowd blocked the key for %v, want %v at most", took, most)
		} else {
			t.Log("a dead crowd blocked the key for", took)
		}
	})
}

// A place lasts for up to eight TTLs, of which each counts as two minutes at most, or as three looks.
func TestPlacesEnd(t *testing.T) {
	for _, c := range []struct{ look, ttl, second, last time.Duration }{
		{0, 10 * time.Second, 12500 * time.Millisecond, 80 * time.Second},
		{0, time.Minute, 75 * time.Second, 8 * time.Minute},
		{0, 24 * time.Hour, 150 * time.Second, 16 * time.Minute},
		{time.Minute, 24 * time.Hour, 225 * time.Second, 24 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := caslock.New(newMemory(), &caslock.Options{Look: c.look})
			defer s.Close()
			var second, last driver.Grant
			for i := range 40 {
				last = waits(t, s, fmt.Sprint(i), c.ttl)
				if i == 2 { // 0 holds
					second = last
				}
			}
			if second.Kept != c.second || last.Kept != c.last {
				t.Errorf("with a TTL of %v, the second place lasts for %v and the last for %v, want %v and %v", c.ttl, second.Kept, last.Kept, c.second, c.last)
			}
		})
	}
}

// waits requests an exclusive claim with a TTL, and a place in the queue.
func waits(t *testing.T, s *caslock.Store, id string, ttl time.Duration) driver.Grant {
	t.Helper()
	c := claim("k", id)
	c.TTL = ttl
	g, err := s.Acquire(t.Context(), driver.Ask{Claim: c, Wait: true, Span: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A dead waiter behind the head blocks a key for two and a half minutes, and not for hours, if the
// claims have a TTL of a day and the holder has had the key for hours.
func TestDeadSecondWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, step = 24 * time.Hour, 20 * time.Second
		s := caslock.New(newMemory(), nil)
		defer s.Close()
		release := func(id string) {
			t.Helper()
			if errs := s.Release(t.Context(), []driver.Release{{Claim: claim("k", id)}}); errs != nil {
				t.Fatal(errs)
			}
		}
		waits(t, s, "holder", ttl)
		for range 10 * time.Hour / step {
			for _, id := range []string{"first", "dead", "living"} {
				if g := waits(t, s, id, ttl); g.OK {
					t.Fatalf("%s has the key of the holder", id)
				}
			}
			time.Sleep(step)
		}
		release("holder")
		if g := waits(t, s, "first", ttl); !g.OK {
			t.Fatalf("%+v", g)
		}
		release("first")
		began := time.Now()
		for !waits(t, s, "living", ttl).OK {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 150*time.Second {
			t.Errorf("a dead waiter blocked the key for %v", took)
		} else {
			t.Log("a dead waiter blocked the key for", took)
		}
	})
}

// A call that reads the record counts as a look, and then has to wake the waiters as a look does.
func TestCallsThatReadWakeWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		other, s := caslock.New(m, nil), caslock.New(m, nil)
		defer other.Close()
		defer s.Close()
		acquire(t, other, "holder", false)
		acquire(t, s, "waiter", true)
		woken := make(chan struct{}, 1)
		stop, err := s.Watch(t.Context(), claim("k", "waiter"), func(driver.Grant) {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		inspects := func(until time.Duration) {
			for range until / (100 * time.Millisecond) {
				if _, err := s.Holders(t.Context(), "k"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		inspects(2 * time.Second)
		select {
		case <-woken:
			t.Fatal("the waiter was woken although the key is held")
		default:
		}
		other.Release(t.Context(), []driver.Release{{Claim: claim("k", "holder")}})
		inspects(time.Second)
		select {
		case <-woken:
		default:
			t.Error("while the process inspects the key, its waiter is not woken")
		}
	})
}

// A living waiter behind a dead crowd looks as soon as the last place of the crowd has ended.
func TestLookAfterADeadCrowd(t *testing.T) {
	for range 8 {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			crowd := caslock.New(m, nil)
			defer crowd.Close()
			acquire(t, crowd, "holder", false)
			last := driver.Grant{}
			for i := range 40 {
				last = acquire(t, crowd, fmt.Sprint("dead ", i), true)
			}
			living, err := holdfast.New(caslock.New(m, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer living.Close()
			began := time.Now()
			go crowd.Release(t.Context(), []driver.Release{{Claim: claim("k", "holder")}})
			lock, err := living.Lock(t.Context(), "k", holdfast.TTL(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			lock.Unlock()
			most := last.Kept + last.Kept/64 + claim("k", "").Alive() + time.Second
			if took := time.Since(began); took > most {
				t.Errorf("a dead crowd blocked the key for %v, want %v at most", took, most)
			}
		})
	}
}

// A waiter far back is woken when an operator ends its claim, when it gets near the front, and by a
// record of a later release.
func TestFarWaitersWake(t *testing.T) {
	m := newPushing()
	for what, then := range map[string]func(t *testing.T, s *caslock.Store){
		"newer": func(t *testing.T, s *caslock.Store) {
			m.mu.Lock()
			m.records["k"] = bytes.Replace(m.records["k"], []byte(`"format":1`), []byte(`"format":2`), 1)
			m.mu.Unlock()
			m.report("k")
		},
		"broken": func(t *testing.T, s *caslock.Store) {
			if err := s.Break(t.Context(), "k", driver.PublicID("far")); err != nil {
				t.Fatal(err)
			}
		},
		"its turn": func(t *testing.T, s *caslock.Store) {
			for _, id := range []string{"holder", "ahead 0", "ahead 1", "ahead 2", "ahead 3", "ahead 4", "ahead 5"} {
				if errs := s.Release(t.Context(), []driver.Release{{Claim: claim("k", id)}}); errs != nil {
					t.Fatal(errs)
				}
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			m = newPushing()
			other, s := caslock.New(m, nil), caslock.New(m, nil)
			defer other.Close()
			defer s.Close()
			acquire(t, other, "holder", false)
			for i := range 6 {
				acquire(t, other, fmt.Sprint("ahead ", i), true)
			}
			acquire(t, s, "far", true)
			woken := make(chan struct{}, 1)
			stop, err := s.Watch(t.Context(), claim("k", "far"), func(driver.Grant) { woken <- struct{}{} })
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			for i := range 3 { // reports after the first need not be parsed
				acquire(t, other, fmt.Sprint("behind ", i), true)
			}
			select {
			case <-woken:
				t.Fatalf("%s: woken far back", what)
			default:
			}
			then(t, other)
			select {
			case <-woken:
			default:
				t.Errorf("%s: not woken", what)
			}
		})
	}
}

// A waiter that was far back, and got to the front in a moment, waits for a dead waiter ahead as
// briefly as a waiter that has long been at the front.
func TestDeadWaiterAheadOfACrowd(t *testing.T) {
	for _, dead := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			const ahead = 40
			m := newPushing()
			s := caslock.New(m, nil)
			defer s.Close()
			waits(t, s, "holder", crowdTTL)
			for i := range ahead {
				waits(t, s, fmt.Sprint(i), crowdTTL)
			}
			l, err := holdfast.New(caslock.New(m, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			got := make(chan time.Time, 1)
			go func() {
				lock, err := l.Lock(t.Context(), "k", holdfast.TTL(crowdTTL))
				if err != nil {
					t.Error(err)
				} else {
					lock.Unlock()
				}
				got <- time.Now()
			}()
			synctest.Wait()
			for i := range ahead - dead + 1 {
				id := "holder"
				if i > 0 {
					id = fmt.Sprint(i - 1)
				}
				if errs := s.Release(t.Context(), []driver.Release{{Claim: claim("k", id)}}); errs != nil {
					t.Fatal(errs)
				}
			}
			began := time.Now()
			took := (<-got).Sub(began)
			if most := time.Duration(dead) * 4 * time.Second; took > most {
				t.Errorf("%d dead waiters blocked the key for %v, want %v at most", dead, took, most)
			} else {
				t.Logf("%d dead waiters blocked the key for %v", dead, took)
			}
		})
	}
}
