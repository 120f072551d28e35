package zklock

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// A mixture is a key that readers and slots hold together.
type mixture struct {
	t     *testing.T
	store *Store
	key   string
}

func (m mixture) ask(id string, limit int64) driver.Ask {
	a := exclusive(m.key, id)
	a.Weight, a.Limit, a.Wait = 1, limit, true
	return a
}

func (m mixture) take(a driver.Ask) uint64 {
	m.t.Helper()
	return granted(m.t, m.store, a).Fence
}

// wait lets a claim wait. Nobody asks for the claim again soon, but the place stays.
func (m mixture) wait(a driver.Ask) {
	m.t.Helper()
	servers.Until(m.t, a.ID+" waits", func() bool {
		refused(m.t, m.store, a)
		m.store.mu.Lock()
		defer m.store.mu.Unlock()
		cl := m.store.claims[nameOf(a.Claim)]
		if cl == nil || cl.state != waiting { // The answer was too slow for the place.
			return false
		}
		cl.until += patience
		return true
	})
}

func (m mixture) end(a driver.Ask) {
	m.t.Helper()
	if err := release(bounded(m.t), m.store, a); err != nil {
		m.t.Fatalf("%s was released: %v", a.ID, err)
	}
}

// forgetPhase waits until the servers have removed a phase that nobody is in.
func (m mixture) forgetPhase() {
	m.t.Helper()
	servers.Until(m.t, "there is no phase", func() bool {
		l, _, err := sessionOf(m.t, m.store, patience).list(bounded(m.t), m.store.dir(m.key))
		return err == nil && !l.phase
	})
}

func (m mixture) reader(id string) driver.Ask { return m.ask(id, driver.MaxWeight) }
func (m mixture) slot(id string) driver.Ask   { return m.ask(id, 100) }

// TestReadersBesideSlots lets readers and slots hold together. Readers that come
// after a slot have a token above that of the slot, and share it.
func TestReadersBesideSlots(t *testing.T) {
	t.Parallel()
	m := mixture{t, newStore(t, []string{server.Addr()}, nil), "mixed/beside"}
	var last uint64
	var all []driver.Release
	for _, round := range []string{"a", "b", "c"} {
		first, second, slot, other := m.reader("1"+round), m.reader("2"+round), m.slot("3"+round), m.slot("4"+round)
		token := m.take(first)
		if token <= last {
			t.Errorf("a reader got %d after %d", token, last)
		}
		if got := m.take(second); got != token {
			t.Errorf("readers got %d and %d", token, got)
		}
		for _, a := range []driver.Ask{slot, other} {
			if last = m.take(a); last <= token {
				t.Errorf("a slot got %d after %d", last, token)
			}
			token = last
		}
		for _, a := range []driver.Ask{first, second, slot, other} {
			all = append(all, driver.Release{Claim: a.Claim})
		}
	}
	if errs := m.store.Release(bounded(t), all); errs != nil {
		t.Error(errs)
	}
	if got := m.take(exclusive(m.key, "writer")); got <= last {
		t.Errorf("a writer got %d after %d", got, last)
	}
}

// TestSlotBetweenReaders has a slot wait between two readers, all of them behind a writer that
// gives up beside a reader. A reader that holds before the slot shares the first reader's token.
// Later readers share a token larger than the slot's, even a reader ahead of the slot.
func TestSlotBetweenReaders(t *testing.T) {
	t.Parallel()
	store := newStore(t, []string{server.Addr()}, nil)
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		m := mixture{t, store, fmt.Sprint("between/", order)}
		line := []driver.Ask{m.reader("ahead"), m.slot("slot"), m.reader("behind")}
		token, over := m.take(m.reader("first")), false // of the phase, or of the slot that ended it
		writer := exclusive(m.key, "writer")
		writer.Wait = true
		m.wait(writer)
		for _, a := range line {
			m.wait(a)
		}
		m.end(writer)
		for _, i := range order {
			a := line[i]
			got := m.take(a)
			joins := a.Shared() && !over
			if joins && got != token || !joins && got <= token {
				t.Errorf("in the order %v, %q got %d after %d", order, a.ID, got, token)
			}
			token, over = got, !a.Shared()
		}
	}
}

// TestReaderIsLate lets a slot hold before the readers that queued before the slot. They
// share a token larger than the slot's with later readers.
func TestReaderIsLate(t *testing.T) {
	t.Parallel()
	m := mixture{t, newStore(t, []string{server.Addr()}, nil), "mixed/late"}
	writer := exclusive(m.key, "writer")
	m.take(writer)
	early, late, slot := m.reader("early"), m.reader("late"), m.slot("slot")
	m.wait(early)
	m.wait(late)
	m.wait(slot)
	m.end(writer)
	before := m.take(slot)
	token := m.take(early)
	if token <= before {
		t.Errorf("a reader got %d after the slot with %d", token, before)
	}
	for _, a := range []driver.Ask{late, m.reader("next")} {
		if got := m.take(a); got != token {
			t.Errorf("readers got %d and %d", token, got)
		}
	}
}

// TestReaderIsLast lets a reader hold after those that queued behind it have left,
// and their phase with them. Its token is no smaller than theirs.
func TestReaderIsLast(t *testing.T) {
	t.Parallel()
	for what, ends := range map[string]func(m mixture) uint64{
		"readers": func(mixture) uint64 { return 0 },
		"a slot": func(m mixture) uint64 {
			slot := m.slot("slot")
			defer m.end(slot)
			return m.take(slot)
		},
	} {
		t.Run("behind "+what, func(t *testing.T) {
			t.Parallel()
			m := mixture{t, newStore(t, []string{server.Addr()}, nil), "late/" + what}
			writer, last, early := exclusive(m.key, "writer"), m.reader("last"), m.reader("early")
			m.take(writer)
			m.wait(last)
			m.wait(early)
			m.end(writer)
			token := m.take(early)
			slot := ends(m)
			m.end(early)
			m.forgetPhase()
			if got := m.take(last); got < token {
				t.Errorf("a reader got %d after %d", got, token)
			}
			if got := m.take(m.reader("next")); got < token || got <= slot {
				t.Errorf("the next reader got %d after readers with %d and a slot with %d", got, token, slot)
			}
			m.end(last)
			m.end(m.reader("next"))
			if next := m.take(exclusive(m.key, "next writer")); next <= token || next <= slot {
				t.Errorf("a writer got %d after readers with %d and a slot with %d", next, token, slot)
			}
		})
	}
}

// TestReaderRemovedByHand removes the place of a reader, as somebody may with the
// tools of ZooKeeper. The reader is told, and a writer gets in though the reader's
// session lives.
func TestReaderRemovedByHand(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(*Store, driver.Ask) error{
		"held": func(s *Store, a driver.Ask) (err error) {
			servers.Until(t, "the reader is told", func() bool {
				err = renew(bounded(t), s, a)
				return errors.Is(err, driver.ErrLost)
			})
			return err
		},
		"released": func(s *Store, a driver.Ask) error {
			return release(bounded(t), s, a) // An unanswered try could have been what removed it.
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := mixture{t, newStore(t, []string{server.Addr()}, nil), "removed/" + what}
			observer := newStore(t, []string{server.Addr()}, nil)
			k := sessionOf(t, observer, patience)
			reader := m.reader("reader")
			m.take(reader)
			m.store.mu.Lock()
			path := m.store.claims[nameOf(reader.Claim)].path()
			m.store.mu.Unlock()
			if _, err := k.ask(bounded(t), zoo.Delete(path)); err != nil {
				t.Fatal(err)
			}
			if err := end(m.store, reader); !errors.Is(err, driver.ErrLost) {
				t.Errorf("the reader was told: %v", err)
			}
			servers.Until(t, "a writer gets in", func() bool {
				g, err := observer.Acquire(bounded(t), exclusive(m.key, "writer"))
				return err == nil && g.OK
			})
		})
	}
}

// TestReaderWithOldNews lets a reader go on with an old view, from before a slot came,
// held, and went or stayed. The reader shares a token larger than the slot's with later readers.
func TestReaderWithOldNews(t *testing.T) {
	t.Parallel()
	for stay, ends := range map[string]bool{"slot stays": false, "slot has gone": true} {
		for with, others := range map[string]int{"first": 0, "after others": 2} {
			t.Run(stay+", "+with, func(t *testing.T) {
				t.Parallel()
				m := mixture{t, newStore(t, []string{server.Addr()}, nil), "mixed/" + stay + with}
				for i := range others {
					m.take(m.reader(fmt.Sprint("other", i)))
				}
				late := m.reader("late")
				sessionOf(t, m.store, patience)
				begin := m.store.clock.Now()
				cl, err := m.store.enter(bounded(t), late, begin)
				if err != nil {
					t.Fatal(err)
				}
				old, err := m.store.look(bounded(t), cl)
				if err != nil {
					t.Fatal(err)
				}
				slot := m.slot("slot")
				token := m.take(slot)
				for i := range others {
					m.end(m.reader(fmt.Sprint("other", i)))
				}
				if ends {
					m.end(slot)
				}
				m.forgetPhase()
				g, err := m.store.decide(bounded(t), cl, old, begin)
				if err != nil || !g.OK || g.Fence <= token {
					t.Fatalf("the late reader got %+v, %v, after the slot with %d", g, err, token)
				}
				if next := m.take(m.reader("next")); next != g.Fence {
					t.Errorf("readers got %d and %d", g.Fence, next)
				}
			})
		}
	}
}
