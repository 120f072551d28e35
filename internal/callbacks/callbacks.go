// Package callbacks keeps the functions that a store calls for the Lockers on the store: the
// wake-ups of [driver.Watcher] and the losses of [driver.Notifier]. A program may open several
// Lockers on one store.
//
// The zero values are ready, and safe for concurrent use. Functions run without a mutex of
// this package; a store calls them without its own. So a function may still be called, for an
// earlier event, when the stop of the function has returned.
package callbacks

import (
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/driver"
)

// Losses are the functions that receive lost claims.
type Losses struct {
	mu  sync.Mutex
	all []*func(key, id string, err error) // never changed in place
}

// Notify implements [driver.Notifier].
func (l *Losses) Notify(lost func(key, id string, err error)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.Clip(l.all), &lost)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = without(l.all, &lost)
	}
}

// Any reports whether somebody receives losses.
func (l *Losses) Any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all) > 0
}

// Tell reports the loss of a claim.
func (l *Losses) Tell(key, id string, err error) {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, lost := range all {
		(*lost)(key, id, err)
	}
}

// Wakes are the functions that wake waiting claims, each under a name: the id of a claim,
// or the name of a lock.
type Wakes struct {
	mu  sync.Mutex
	all map[string][]*func(driver.Grant) // no list is changed in place
}

// Add adds a function. stop removes the function.
func (w *Wakes) Add(name string, wake func(driver.Grant)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[string][]*func(driver.Grant))
	}
	w.all[name] = append(slices.Clip(w.all[name]), &wake)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all[name] = without(w.all[name], &wake)
		if len(w.all[name]) == 0 {
			delete(w.all, name)
		}
	}
}

// Names returns the names that have functions, in no order.
func (w *Wakes) Names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.all))
}

// Wake calls the functions of a name.
func (w *Wakes) Wake(name string, g driver.Grant) {
	w.mu.Lock()
	all := w.all[name]
	w.mu.Unlock()
	for _, wake := range all {
		(*wake)(g)
	}
}

// WakeAll tells every function to ask again.
func (w *Wakes) WakeAll() {
	w.mu.Lock()
	var all []*func(driver.Grant)
	for _, some := range w.all {
		all = append(all, some...)
	}
	w.mu.Unlock()
	for _, wake := range all {
		(*wake)(driver.Grant{})
	}
}

// without returns a new list without one.
func without[T any](all []*T, one *T) []*T {
	return slices.DeleteFunc(slices.Clone(all), func(other *T) bool { return other == one })
}
