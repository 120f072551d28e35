package memlock

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
)

// bell writes down who was woken, and how.
type bell struct{ rings []string }

func (b *bell) watch(t tester, c driver.Ask) (stop func()) {
	t.Helper()
	stop, err := t.Watch(t.Context(), c.Claim, func(g driver.Grant) {
		ring := c.ID
		if g.OK {
			ring = fmt.Sprintf("%s granted for %v", c.ID, g.TTL)
		}
		b.rings = append(b.rings, ring)
	})
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

func (b *bell) heard(t tester, want ...string) {
	t.Helper()
	if !slices.Equal(b.rings, want) {
		t.Errorf("woke %q, want %q", b.rings, want)
	}
	b.rings = nil
}

func TestReleaseWakesTheNext(t *testing.T) {
	bubble(t, func(t tester) {
		var b bell
		holder := writer("key", "a")
		t.granted(holder)
		var line []driver.Ask
		var stops []func()
		for _, id := range []string{"b", "c", "d"} {
			c := writer("key", id)
			line = append(line, c)
			t.refused(c)
			stops = append(stops, b.watch(t, c))
			t.refused(c)
		}
		time.Sleep(time.Second)
		t.release(holder)
		b.heard(t, "b granted for 4s")
		stops[0]()
		t.release(line[1]) // It gives up, and wakes nobody.
		b.heard(t)
		stops[1]()
		t.release(line[0])
		b.heard(t, "d granted for 4s")
	})
}

func TestStoppedWatchIsSilent(t *testing.T) {
	bubble(t, func(t tester) {
		var b bell
		a, c := writer("key", "a"), writer("key", "c")
		t.granted(a)
		t.refused(c)
		b.watch(t, c)()
		t.release(a)
		b.heard(t)
		t.granted(c)
		t.release(c)
		t.empty()
	})
}

// A watch without a place in the queue is woken when there is room again.
func TestWatchWithoutAPlace(t *testing.T) {
	bubble(t, func(t tester) {
		var b bell
		a, c, d := writer("key", "a"), writer("key", "c"), writer("key", "d")
		c.Wait = false
		t.granted(a)
		t.refused(c)
		b.watch(t, c)
		t.refused(c)
		b.heard(t)
		t.refused(d)
		t.release(a)
		b.heard(t, "c") // d got it; asking again is harmless.
		t.release(d)
		b.heard(t, "c")
		t.granted(c)
	})
}

// An expiry is found by the next call for the key, whoever makes it.
func TestAnyCallWakesAfterExpiry(t *testing.T) {
	bubble(t, func(t tester) {
		var b bell
		a, c := writer("key", "a"), writer("key", "c")
		t.granted(a)
		time.Sleep(14 * time.Second)
		t.refused(c)
		b.watch(t, c)
		time.Sleep(2 * time.Second)
		_ = t.Renew(t.Context(), asks.Renewals(a))
		b.heard(t, "c granted for 5s")
	})
}

// A callback may use the store.
func TestWakeMayCallTheStore(t *testing.T) {
	bubble(t, func(t tester) {
		a, c := writer("key", "a"), writer("key", "c")
		t.granted(a)
		t.refused(c)
		var renewed []error
		woken := false
		_, err := t.Watch(t.Context(), c.Claim, func(driver.Grant) {
			woken = true
			renewed = t.Renew(t.Context(), asks.Renewals(c))
		})
		if err != nil {
			t.Fatal(err)
		}
		t.release(a)
		if !woken || renewed != nil {
			t.Errorf("woken: %v, renewal from the callback: %v", woken, renewed)
		}
	})
}

func TestBreak(t *testing.T) {
	bubble(t, func(t tester) {
		var b bell
		type loss struct {
			key, id string
			err     error
		}
		var lost []loss
		stop := t.Notify(func(key, id string, err error) { lost = append(lost, loss{key, id, err}) })
		a, c, d := writer("key", "a"), writer("key", "c"), writer("key", "d")
		t.granted(a)
		t.refused(c)
		b.watch(t, c)

		if err := t.Break(t.Context(), "key", "a"); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Break by the claim's own id says %v, want ErrLost", err)
		}
		if err := t.Break(t.Context(), "other", driver.PublicID("a")); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Break on another key says %v, want ErrLost", err)
		}
		if err := t.Break(t.Context(), "key", driver.PublicID("a")); err != nil {
			t.Fatal(err)
		}
		if want := []loss{{"key", "a", driver.ErrBroken}}; !slices.Equal(lost, want) {
			t.Errorf("told of %v, want %v", lost, want)
		}
		b.heard(t, "c granted for 3s")
		if errs := t.Renew(t.Context(), asks.Renewals(a)); !errors.Is(errs[0], driver.ErrBroken) {
			t.Errorf("Renew says %v, want ErrBroken", errs)
		}

		lost = nil
		t.refused(d)
		if err := t.Break(t.Context(), "key", driver.PublicID("d")); err != nil {
			t.Fatal(err)
		}
		if want := []loss{{"key", "d", driver.ErrBroken}}; !slices.Equal(lost, want) {
			t.Errorf("told of %v, want the one in the queue, %v", lost, want)
		}
		lost = nil
		stop()
		stop()
		if err := t.Break(t.Context(), "key", driver.PublicID("c")); err != nil {
			t.Fatal(err)
		}
		if lost != nil {
			t.Errorf("told of %v after stop", lost)
		}
	})
}

func TestHolders(t *testing.T) {
	bubble(t, func(t tester) {
		if list, err := t.Holders(t.Context(), "key"); list != nil || err != nil {
			t.Errorf("holders of nothing: %v, %v", list, err)
		}
		a, c := writer("key", "a"), writer("key", "c")
		a.Note = "why"
		fence := t.granted(a).Fence
		since := time.Now()
		time.Sleep(5 * time.Second)
		t.refused(c)
		list, err := t.Holders(t.Context(), "key")
		if err != nil || len(list) != 2 {
			t.Fatalf("holders: %v, %v, want two", list, err)
		}
		if h := list[0]; h.ID != driver.PublicID("a") || h.Owner != a.Owner || h.Note != "why" || h.Fence != fence ||
			!h.Since.Equal(since) || h.Left != 10*time.Second || h.Waiting {
			t.Errorf("first holder %+v", h)
		}
		if h := list[1]; h.ID != driver.PublicID("c") || h.Fence != 0 || h.Left != 3*time.Second || !h.Waiting {
			t.Errorf("first in the queue %+v", h)
		}
	})
}

func TestKeys(t *testing.T) {
	bubble(t, func(t tester) {
		for _, key := range []string{"a/1", "a/2", "b/1"} {
			t.granted(writer(key, key))
		}
		var got []string
		for key, err := range t.Keys(t.Context(), "a/") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, key)
			t.release(writer("b/1", "b/1"))
			t.granted(writer("b/1", "b/1")) // The loop may use the store.
		}
		slices.Sort(got)
		if want := []string{"a/1", "a/2"}; !slices.Equal(got, want) {
			t.Errorf("keys %q, want %q", got, want)
		}
		for range t.Keys(t.Context(), "") {
			break
		}
		time.Sleep(15 * time.Second)
		for key := range t.Keys(t.Context(), "") {
			t.Errorf("key %q has run out", key)
		}
	})
}
