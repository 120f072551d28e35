package callbacks_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/callbacks"
)

func TestLosses(t *testing.T) {
	var losses callbacks.Losses
	gone := errors.New("gone")
	var told []string
	var stop func()
	receive := func(who string) func(string, string, error) {
		return func(key, id string, err error) {
			if err != gone {
				t.Errorf("%s was told of %v, want %v", who, err, gone)
			}
			told = append(told, who+" "+key+" "+id)
			stop() // a function may end its own calls
		}
	}
	losses.Tell("k", "nobody listens", gone)
	if losses.Any() {
		t.Error("somebody listens before Notify")
	}
	stop = losses.Notify(receive("a"))
	end := losses.Notify(receive("b"))
	losses.Tell("k", "1", gone)
	losses.Tell("k", "2", gone)
	end()
	losses.Tell("k", "3", gone)
	if want := []string{"a k 1", "b k 1", "b k 2"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if losses.Any() {
		t.Error("somebody listens after every stop")
	}
}

func TestWakes(t *testing.T) {
	var wakes callbacks.Wakes
	var woken []string
	add := func(name, who string) func() {
		return wakes.Add(name, func(g driver.Grant) {
			if g.OK {
				who += "!"
			}
			woken = append(woken, who)
		})
	}
	first, second := add("x", "first"), add("x", "second")
	other := add("y", "other")
	wakes.Wake("nobody", driver.Grant{})
	wakes.Wake("x", driver.Grant{})
	if names := slices.Sorted(slices.Values(wakes.Names())); !slices.Equal(names, []string{"x", "y"}) {
		t.Errorf("the names are %q, want x and y", names)
	}
	first()
	wakes.Wake("x", driver.Grant{OK: true})
	second()
	if names := wakes.Names(); !slices.Equal(names, []string{"y"}) {
		t.Errorf("the names are %q, want y", names)
	}
	wakes.Wake("x", driver.Grant{})
	wakes.WakeAll()
	other()
	wakes.WakeAll()
	if want := []string{"first", "second", "second!", "other"}; !slices.Equal(woken, want) {
		t.Errorf("woken %q, want %q", woken, want)
	}
}
