package memlock

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
)

func openURL(t *testing.T, url string) tester {
	t.Helper()
	s, err := driver.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return tester{t, s.(*Store)}
}

func TestOpen(t *testing.T) {
	a, b := openURL(t, "mem://"), openURL(t, "mem://")
	a.granted(writer("key", "a"))
	b.granted(writer("key", "b"))

	one, two, other := openURL(t, "mem://one"), openURL(t, "mem://one"), openURL(t, "mem://other")
	one.granted(writer("key", "one"))
	two.refused(writer("key", "two"))
	other.granted(writer("key", "other"))

	// The claims of one Store stay while a second Store of the same name is open.
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	two.refused(writer("key", "two"))
	three := openURL(t, "mem://one")
	three.refused(writer("key", "three"))
	for _, s := range []tester{two, three, other} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(named.spaces) != 0 {
		t.Errorf("%d names are left, want none", len(named.spaces))
	}
	again := openURL(t, "mem://one")
	again.granted(writer("key", "again"))
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// The place of a waiter lasts for seconds only.
func TestStoresOfOneName(t *testing.T) { synctest.Test(t, testStoresOfOneName) }

func testStoresOfOneName(t *testing.T) {
	one, two := openURL(t, "mem://shared"), openURL(t, "mem://shared")
	defer two.Close()
	var told []string
	one.Notify(func(_, id string, _ error) { told = append(told, "one: "+id) })
	two.Notify(func(_, id string, _ error) { told = append(told, "two: "+id) })
	a, b := writer("key", "a"), writer("key", "b")
	one.granted(a)
	two.refused(b)
	var woken, closed bool
	if _, err := two.Watch(t.Context(), b.Claim, func(g driver.Grant) { woken = g.OK }); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Watch(t.Context(), a.Claim, func(driver.Grant) { closed = true }); err != nil {
		t.Fatal(err)
	}
	if err := two.Break(t.Context(), "key", driver.PublicID("a")); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0] != "one: a" {
		t.Errorf("told %q, want only the store that had the claim", told)
	}
	if !woken {
		t.Error("the waiter in the other store was not woken")
	}
	woken, closed = false, false
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if woken || !closed {
		t.Errorf("Close woke the other store's watch: %v, its own: %v", woken, closed)
	}
	if errs := two.Renew(t.Context(), asks.Renewals(b)); errs != nil {
		t.Errorf("the other store's claim: %v", errs)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, url := range []string{"mem:name", "mem:///name", "mem://name/more", "mem://me:secret@name", "mem://name#part"} {
		_, err := driver.Open(t.Context(), url)
		if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), "want mem:// or mem://name") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	_, err := driver.Open(t.Context(), "mem://name?ttl=5s")
	if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), `unknown URL parameter "ttl"`) {
		t.Errorf("unknown parameter: %v", err)
	}
}
