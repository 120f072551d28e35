package leases

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// A cutter is a client behind a proxy, and one beside it.
type cutter struct {
	*testing.T
	store  store // behind the proxy
	beside store
	proxy  *servers.Proxy

	lost    int           // answers
	dropped int           // bytes
	delay   time.Duration // of answers that are to be lost
}

func newCutter(t *testing.T, e *engine, at string) *cutter {
	c := &cutter{T: t, proxy: servers.StartProxy(t, e.shared.Addr()), beside: open(t, at), delay: 300 * time.Millisecond}
	c.store = open(t, with(through(at, c.proxy.Addr()), "conns", "1"))
	return c
}

// lose makes a call whose answer gets lost after the server has done what it
// asks for, as seen tells. On a machine that is too slow for that the call gets
// its answer; what is true of the one is true of the other. Until an answer is lost, the
// delay grows.
func (c *cutter) lose(call func(ctx context.Context) error, seen func() bool) {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.proxy.Replies.Delay(c.delay)
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	servers.Until(c, "the server to have done it", seen)
	c.proxy.Replies.Drop(true)
	c.proxy.Replies.Delay(0)
	servers.Until(c, "the answer", func() bool { return c.proxy.Replies.Dropped() > c.dropped || len(done) > 0 })
	c.proxy.Replies.Drop(false)
	err := <-done
	if errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrInvalid) {
		c.Errorf("the answer was lost, and the call says %v", err)
	}
	switch {
	case err != nil:
		c.lost++
	case c.lost == 0:
		c.delay = min(2*c.delay, 5*time.Second)
	}
	c.dropped = c.proxy.Replies.Dropped()
}

// holder returns what people see of a claim, the zero Holder if it is not there.
func (c *cutter) holder(claim driver.Ask) driver.Holder {
	holders, err := c.beside.Holders(c.Context(), claim.Key)
	succeed(c, err)
	for _, h := range holders {
		if h.ID == driver.PublicID(claim.ID) {
			return h
		}
	}
	return driver.Holder{}
}

func (c *cutter) acquire(s store, claim driver.Ask) driver.Grant {
	c.Helper()
	g, err := s.Acquire(c.Context(), claim)
	succeed(c, err)
	return g
}

// The connection is cut after the server has committed and before it has said
// so. Asked again, the server tells the same.
func TestLostAnswers(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		c := newCutter(t, e, at)
		for _, round := range []string{"new", "free"} {
			const attempts = 3
			proved := false
			for tries := 1; tries <= attempts && !proved; tries++ {
				key := "key1"
				if round == "new" {
					key = fmt.Sprint("key", tries)
				}
				proved = c.loseAll(round, key, fmt.Sprint(round, tries))
			}
			if !proved {
				unproved.Logf(t, "a key that is %s: b has not kept its place", round)
			}
		}
		if c.lost == 0 {
			t.Error("no answer was lost")
		}
	})
}

// loseAll loses the answers to all that two claims ask for. It reports whether
// b asked again each time before its place in the queue ended.
func (c *cutter) loseAll(round, key, try string) bool {
	c.Helper()
	a, b, next := exclusive(key, "a"+try), exclusive(key, "b"+try), exclusive(key, "next"+try)
	b.Wait, next.Wait = true, true
	acquire := func(claim driver.Ask) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.store.Acquire(ctx, claim); return err }
	}
	c.lose(acquire(a), func() bool { return c.holder(a).Fence > 0 })
	fence := c.holder(a).Fence
	if g := c.acquire(c.store, a); !g.OK || g.Fence != fence {
		c.Errorf("a key that is %s: asked again: %+v, want token %d", round, g, fence)
	}
	asked, inTime := time.Now(), true
	again := func() driver.Grant {
		last := asked
		asked = time.Now()
		g := c.acquire(c.store, b)
		inTime = inTime && time.Since(last) < b.Alive()
		return g
	}
	c.lose(acquire(b), func() bool { return c.holder(b).Waiting || time.Since(asked) > b.Alive() })
	c.acquire(c.beside, next)
	if g := again(); g.OK {
		c.Errorf("a key that is %s: b passes a", round)
	}
	renewed := a
	renewed.TTL = time.Hour
	c.lose(func(ctx context.Context) error { return c.store.Renew(ctx, asks.Renewals(renewed))[0] },
		func() bool { return c.holder(a).Left > a.TTL })
	succeed(c, c.store.Renew(c.Context(), asks.Renewals(a))[0])
	again() // It keeps its place by that.

	// The release lets b in, once.
	c.lose(func(ctx context.Context) error { return c.store.Release(ctx, asks.Releases(a))[0] },
		func() bool { return c.holder(a) == driver.Holder{} })
	if err := c.store.Release(c.Context(), asks.Releases(a))[0]; !errors.Is(err, driver.ErrLost) {
		c.Errorf("a key that is %s: released again: %v, want ErrLost", round, err)
	}
	second, first := c.acquire(c.beside, next), again()
	if inTime {
		if second.OK {
			c.Errorf("a key that is %s: next passes b, who came first", round)
		}
		if !first.OK || first.Fence <= fence {
			c.Errorf("a key that is %s: b after a's release: %+v; token %d was before", round, first, fence)
		}
	}
	for _, claim := range []driver.Ask{next, b} {
		if err := c.beside.Release(c.Context(), asks.Releases(claim))[0]; err != nil && !errors.Is(err, driver.ErrLost) {
			c.Error(err)
		}
	}
	return inTime
}

// A lock granted without an answer to its client, who never asks again, is in nobody's way
// for longer than its TTL. A lost request does nothing.
func TestOrphans(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		c := newCutter(t, e, at)
		orphan, late := exclusive("key", "orphan"), exclusive("key", "late")
		orphan.TTL = 2 * time.Second
		asked := time.Now()
		c.lose(func(ctx context.Context) error { _, err := c.store.Acquire(ctx, orphan); return err },
			func() bool { return c.holder(orphan).Fence > 0 || time.Since(asked) > orphan.TTL })
		c.acquire(c.store, exclusive("other", "other")) // connects again

		c.proxy.Requests.Drop(true)
		done := make(chan error)
		go func() {
			_, err := c.store.Acquire(t.Context(), late)
			done <- err
		}()
		servers.Until(t, "the request to be lost", func() bool { return c.proxy.Requests.Dropped() > 0 })
		c.proxy.Requests.Drop(false)
		if err := <-done; err == nil {
			t.Error("the request was lost, and the call says that nothing is wrong")
		}
		var g driver.Grant
		servers.Until(t, "the orphan's end", func() bool { g = c.acquire(c.beside, exclusive("key", "next")); return g.OK })
		if c.holder(late) != (driver.Holder{}) {
			t.Error("what got lost on its way was done")
		}
	})
}
