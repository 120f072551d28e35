package memcachelock

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// refuse requests a claim until both marks are written, and reports whether the claim is next.
func refuse(t *testing.T, s *Store, c driver.Ask) (next bool) {
	t.Helper()
	for range 3 {
		g, err := s.Acquire(t.Context(), c)
		if g.OK || err != nil {
			t.Fatalf("%s: %+v, %v; want a refusal", c.ID, g, err)
		}
		if next = g.Next; !next && g.Pause < nextPause {
			t.Errorf("%s: a pause of %v", c.ID, g.Pause)
		}
	}
	return next
}

// marked is how long a mark stands at least, less a margin.
const marked = 1500 * time.Millisecond

func waiting(key, id string) driver.Ask {
	c := exclusive(key, id+" for "+key)
	c.Wait = true
	return c
}

// One waiter is next. The others follow when it acquires the key, gives up, or dies.
func TestOneWaiterIsNext(t *testing.T) {
	t.Parallel()
	prefix := rand.Text()
	stores := make(map[string]*Store)
	for _, id := range []string{"holder", "first", "second", "third"} {
		stores[id] = newStore(t, &Options{Prefix: prefix}, shared)
	}
	var key string
	next := func(id string) bool { return refuse(t, stores[id], waiting(key, id)) }
	end := func(id string) {
		t.Helper()
		if err := release(t.Context(), stores[id], waiting(key, id)); err != nil && !errors.Is(err, driver.ErrLost) {
			t.Fatalf("%s: %v", id, err)
		}
	}
	follow := func() (wrong string) {
		granted(t, stores["holder"], waiting(key, "holder"))
		if !next("first") || next("second") || next("third") {
			return "want the first waiter to be next, and no other"
		}
		end("holder")
		granted(t, stores["first"], waiting(key, "first"))
		if !next("second") || next("third") {
			return "the next waiter has the key: want the second waiter to be next, and not the third"
		}
		end("second")
		if !next("third") {
			return "the next waiter has given up: want the third waiter to be next"
		}
		return ""
	}
	var wrong string
	unproved.InTime(t, marked, func() {
		key = rand.Text()
		wrong = follow()
	})
	if wrong != "" {
		t.Fatal(wrong)
	}
	servers.Until(t, "the mark of a waiter that asks no more to expire", func() bool {
		asked := time.Now()
		if !next("second") {
			return false
		}
		if !next("third") {
			return true
		}
		if time.Since(asked) < marked {
			t.Fatal("two waiters are next")
		}
		return false
	})
}

// A hooked connection calls a function before it sends an "add".
type hooked struct {
	net.Conn
	hook *func() // called once, and set to nil
}

func (c hooked) Write(b []byte) (int, error) {
	if hook := *c.hook; hook != nil && bytes.Contains(b, []byte("\nadd ")) {
		*c.hook = nil
		hook()
	}
	return c.Conn.Write(b)
}

// The next waiter that a newcomer outruns removes its marks with the attempt. The waiter comes
// again soon, and is next again.
func TestNextIsOutrun(t *testing.T) {
	t.Parallel()
	var hook func()
	prefix := rand.Text()
	first := newStore(t, &Options{Prefix: prefix, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return hooked{c, &hook}, err
	}}, shared)
	other, second := newStore(t, &Options{Prefix: prefix}, shared), newStore(t, &Options{Prefix: prefix}, shared)
	outrun := func(key string) (wrong string) {
		holder, newcomer := exclusive(key, "holder of "+key), exclusive(key, "newcomer for "+key)
		waiter, behind := waiting(key, "waiter"), waiting(key, "behind")
		granted(t, other, holder)
		if !refuse(t, first, waiter) || refuse(t, second, behind) {
			return "want the first waiter to be next"
		}
		if err := release(t.Context(), other, holder); err != nil {
			t.Fatal(err)
		}
		hook = func() { granted(t, other, newcomer) }
		if g, err := first.Acquire(t.Context(), waiter); g.OK || err != nil || g.Pause != nextPause || !g.Next {
			return fmt.Sprintf("the waiter that was outrun: %+v, %v; want a refusal with a pause of %v, as next", g, err, nextPause)
		}
		if hook != nil {
			t.Fatal("nothing was added: this test shows nothing")
		}
		if !refuse(t, first, waiter) || refuse(t, second, behind) {
			return "want the first waiter to be next again"
		}
		return ""
	}
	var wrong string
	unproved.InTime(t, marked, func() { wrong = outrun(rand.Text()) })
	if wrong != "" {
		t.Error(wrong)
	}
}

// A waiter that has waited for long asks seldom, and the pause of a waiter is at most a
// hundredth of its wait.
func TestPauseOfTheNextGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct{ waited, pause time.Duration }{
			{0, nextPause}, {500 * time.Millisecond, nextPause}, {10 * time.Second, 100 * time.Millisecond},
		} {
			p := &place{next: 1, since: time.Now().Add(-test.waited)}
			if got, next := p.pause(); !next || got != test.pause {
				t.Errorf("after %v: a pause of %v, want %v", test.waited, got, test.pause)
			}
		}
	})
}
