package leases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// Leavers ask a server through a proxy, and give up.
type leavers struct {
	*testing.T
	store store
	locks *holdfast.Locker // on it
	proxy *servers.Proxy
	most  int  // connections that it may have
	late  bool // the last try, or none was made, so connections may be missing
}

// enoughTime is how long what was sent has to come to its end.
const enoughTime = time.Second

// leave lets many ask and give up while the server is silent, until it has answered in
// time to those who had left. The store makes no connection for that. A pool may make one for another
// reason, so one of three tries must show it.
func (l *leavers) leave(who string, ask func(c driver.Ask, wait time.Duration) error) {
	l.Helper()
	tries := 0
	try := func() (cost int, judged bool) {
		tries++
		before, began := max(l.proxy.Accepted(), l.most), time.Now()
		list := askers(fmt.Sprint(who, tries))
		l.proxy.Replies.Hold(true)
		var all sync.WaitGroup
		for i, c := range list {
			all.Go(func() {
				if err := ask(c, time.Duration(i%5+1)*time.Millisecond); err == nil {
					l.Errorf("%s: a silent server has answered", who)
				}
			})
		}
		all.Wait()
		l.proxy.Replies.Hold(false)
		succeed(l, unlock(lock(l, l.locks, "key of nobody else")))
		cost, judged = l.proxy.Accepted()-before, !l.late && time.Since(began) < enoughTime
		ends := asks.Releases(list...)
		for i := range ends {
			ends[i].Late = true
		}
		for i, err := range l.store.Release(l.Context(), ends) {
			if err != nil && !errors.Is(err, driver.ErrLost) {
				l.Errorf("release of %s: %v", list[i].ID, err)
			}
		}
		l.late = time.Since(began) >= enoughTime
		return cost, judged
	}
	costly := 0
	for began := time.Now(); ; {
		cost, judged := try()
		switch {
		case judged && cost <= 0:
			return
		case judged:
			if costly++; costly == 3 {
				l.Errorf("%s: those who gave up have cost connections in each of %d tries, %d in the last", who, costly, cost)
				return
			}
		case time.Since(began) > patience:
			unproved.Logf(l, "%s: that claims that give up cost no connections", who)
			return
		}
	}
}

// wanted is how many keys askers want.
const wanted = 7

// askers are many who want a few keys. Some would wait in the queue.
func askers(name string) (list []driver.Ask) {
	for i := range 40 {
		c := exclusive(fmt.Sprint("key", i%wanted), fmt.Sprint(name, i))
		c.Wait = i%2 == 0
		list = append(list, c)
	}
	return list
}

// warm opens all connections.
func (l *leavers) warm() {
	inParallel(l.T, 2*l.most, 20*l.most, func(i int) error {
		c := exclusive(fmt.Sprint("before", i), "holder")
		if _, err := l.store.Acquire(l.Context(), c); err != nil {
			return err
		}
		return l.store.Release(l.Context(), asks.Releases(c))[0]
	})
	succeed(l, unlock(lock(l, l.locks, "before")))
}

// A caller that gives up while the server is silent for a moment costs the server no
// connection, and leaves nothing.
func TestLeavingCostsNoConnection(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at, conns := create(t, e.shared.URL()), 4
		// One more connection listens, or keeps the bell.
		l := &leavers{T: t, proxy: servers.StartProxy(t, e.shared.Addr()), most: conns + 1, late: true}
		l.store = open(t, with(through(at, l.proxy.Addr()), "conns", fmt.Sprint(conns)))
		l.locks = lockerOf(t, l.store, nil)
		l.warm()
		l.leave("a store", func(c driver.Ask, wait time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, err := l.store.Acquire(ctx, c)
			return err
		})
		l.leave("a locker", func(c driver.Ask, wait time.Duration) error {
			lock, err := l.locks.Lock(t.Context(), c.Key, holdfast.Wait(wait))
			if err == nil {
				return unlock(lock)
			}
			return err
		})
		beside := open(t, at)
		servers.Until(t, "nothing to be left", func() bool {
			for _, err := range beside.Keys(t.Context(), "") {
				succeed(t, err)
				return false
			}
			return true
		})
		for i := range wanted {
			succeed(t, unlock(lock(t, l.locks, fmt.Sprint("key", i))))
		}
	})
}

// A foreign transaction has locked the rows of some keys. Callers for these keys that give
// up are in nobody's way: other keys are locked, renewed and unlocked meanwhile.
func TestOtherKeysGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s of a processor: make prove")
	}
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		const ttl, enoughRenewals, attempts = 3 * time.Second, 2, 3
		var renewals, risks atomic.Int64
		locks := locker(t, at, &holdfast.Options{TTL: ttl, Trace: &holdfast.Trace{
			Renewed: func(e holdfast.Event) {
				if e.Key == "held" {
					renewals.Add(1)
				}
			},
		}})
		beside := locker(t, at, &holdfast.Options{TTL: ttl, Trace: &holdfast.Trace{
			AtRisk: func(holdfast.Event) { risks.Add(1) },
		}})
		locked := []string{"locked0", "locked1", "locked2", "locked3"}
		db, _ := e.pool(t, at, 1)
		tx, err := db.BeginTx(t.Context(), nil)
		succeed(t, err)
		for _, key := range locked {
			succeed(t, unlock(lock(t, locks, key))) // Now it has a row.
			_, err := tx.ExecContext(t.Context(), "UPDATE "+table(at)+" SET since = since WHERE name = '"+key+"'")
			succeed(t, err)
		}

		// A machine that is too slow for those who have a pool of their own says nothing.
		seen := int64(0) // renewals, in all attempts
		attempt := func() (fast bool) {
			held, control := lock(t, locks, "held"), lock(t, beside, "beside")
			renewals.Store(0)
			risks.Store(0)
			enough, stop := context.WithCancel(t.Context())
			pace := time.NewTicker(5 * time.Millisecond) // leaves something of the processor to others
			defer pace.Stop()
			var leaving sync.WaitGroup
			for _, key := range locked {
				leaving.Go(func() {
					for enough.Err() == nil {
						ctx, cancel := context.WithTimeout(enough, 5*time.Millisecond)
						if _, err := locks.TryLock(ctx, key); err == nil {
							t.Error("a row that somebody has locked was written")
						}
						cancel()
					}
				})
			}
			for held.Err() == nil && renewals.Load() < enoughRenewals {
				<-pace.C
				succeed(t, unlockAtOnce(lock(t, locks, "other")))
			}
			stop()
			leaving.Wait()
			seen += renewals.Load()
			fast = risks.Load() == 0 && control.Err() == nil
			if err := held.Err(); err != nil && fast {
				t.Errorf("another key after %d renewals: %v", renewals.Load(), err)
			}
			unlock(held)
			unlock(control)
			return fast
		}
		proved := false
		began := time.Now()
		for n := 0; !proved && (n < attempts || seen == 0 && time.Since(began) < patience); n++ {
			proved = attempt()
		}
		succeed(t, tx.Rollback())
		for _, key := range locked {
			succeed(t, unlock(lock(t, locks, key)))
		}
		switch {
		case proved:
		case seen == 0:
			t.Error("another key was never renewed")
		default:
			unproved.Skipf(t, "that calls for locked rows delay no other key")
		}
	})
}
