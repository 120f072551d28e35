package etcdlock_test

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// TestReadersMeet has readers on both sides of a writer that gives up: they hold at
// the same time then, and have one token, also those who join when the first have
// gone.
func TestReadersMeet(t *testing.T) {
	t.Parallel()
	a, b := openStore(t, shared.URL()), openStore(t, shared.URL())
	inTime(t, func(t *scene) {
		key := rand.Text()
		reader := func(id string) driver.Ask {
			a := waiting(key, id+key)
			a.Weight = 1
			return a
		}
		phase := granted(t, a, reader("first")).Fence
		wakes := make(chan driver.Grant, 8)
		defer watch(t, b, reader("third").Claim, func(g driver.Grant) { wakes <- g })()
		t.begin()
		writer := waiting(key, "writer"+key)
		refused(t, a, writer)
		for _, id := range []string{"second", "third"} {
			refused(t, b, reader(id))
		}
		release(t, a, writer.Claim)
		select {
		case <-wakes:
		case <-time.After(aWhile):
			t.missing("a reader is woken")
		}
		same := func(s driver.Store, id string) {
			t.Helper()
			if g := granted(t, s, reader(id)); g.Fence != phase {
				t.Errorf("%s has token %d, the first %d", id, g.Fence, phase)
			}
		}
		same(b, "third") // before the one before it has asked
		same(b, "second")
		same(a, "fourth")
		release(t, a, reader("first").Claim)
		release(t, b, reader("second").Claim)
		release(t, b, reader("third").Claim)
		same(b, "fifth")
		release(t, a, reader("fourth").Claim)
		release(t, b, reader("fifth").Claim)
		if g := granted(t, a, exclusive(key, "next writer"+key)); g.Fence <= phase {
			t.Errorf("a writer has token %d after %d", g.Fence, phase)
		}
	})
}

// TestSlotBetweenReaders has a slot wait between two readers, all of them behind a writer that
// gives up beside a reader. The reader ahead of the slot joins the first reader. The reader behind
// begins a new phase, with a token larger than the slot's, whichever of them asks first.
func TestSlotBetweenReaders(t *testing.T) {
	t.Parallel()
	a, b := openStore(t, shared.URL()), openStore(t, shared.URL())
	permute([]int{0, 1, 2}, 0, func(order []int) {
		inTime(t, func(t *scene) {
			key := rand.Text()
			reader := func(id string) driver.Ask {
				a := waiting(key, id+key)
				a.Weight = 1
				return a
			}
			slot := reader("slot")
			slot.Limit = 9
			line := []driver.Ask{reader("joins"), slot, reader("behind")}
			phase := granted(t, a, reader("first")).Fence
			t.begin()
			writer := waiting(key, "writer"+key)
			refused(t, a, writer)
			for _, claim := range line {
				refused(t, b, claim)
			}
			release(t, a, writer.Claim)
			tokens := make([]uint64, len(line))
			for _, i := range order {
				tokens[i] = granted(t, b, line[i]).Fence
			}
			if tokens[0] != phase || tokens[1] <= phase || tokens[2] <= tokens[1] {
				t.Errorf("in the order %v: tokens %d, after %d of the first reader", order, tokens, phase)
			}
		})
	})
}

// TestReadersInEveryOrder has two readers wait behind a writer that waits behind
// another reader, and lets everything that may happen then happen in every order:
// the writer gives up, or has its turn and ends; the first reader ends; those who
// wait ask, the last of them only to go at once; one more comes. No reader holds
// beside the writer, all that hold together have one token, and none is smaller than
// one before it. The short form takes a tenth of the orders, by the seed.
func TestReadersInEveryOrder(t *testing.T) {
	t.Parallel()
	a, b := openStore(t, shared.URL()+"?prefix=orders/"), openStore(t, shared.URL()+"?prefix=orders/")
	random := mathrand.New(mathrand.NewPCG(sim.Seed(t), 0))
	permute([]int{0, 1, 2, 3, 4}, 0, func(order []int) {
		if testing.Short() && random.IntN(10) > 0 {
			return
		}
		order = slices.Clone(order)
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			inTime(t, func(s *scene) {
				m := &meeting{scene: s, a: a, b: b, order: order, key: rand.Text(), ended: make(map[string]bool), tokens: make(map[string]uint64)}
				m.run()
			})
		})
	})
}

func permute(list []int, from int, do func([]int)) {
	if from == len(list) {
		do(list)
		return
	}
	for i := from; i < len(list); i++ {
		list[from], list[i] = list[i], list[from]
		permute(list, from+1, do)
		list[from], list[i] = list[i], list[from]
	}
}

// A meeting is a run of one of the orders.
type meeting struct {
	*scene
	a, b  driver.Store
	key   string
	order []int

	mu     sync.Mutex
	ended  map[string]bool
	tokens map[string]uint64 // of all that were granted
	writes uint64            // the writer's token, once it holds
}

func (m *meeting) claim(id string) driver.Claim {
	c := waiting(m.key, id+m.key).Claim
	if id != "writer" {
		c.Weight = 1
	}
	return c
}

func (m *meeting) run() {
	for _, id := range []string{"writer", "second", "third"} {
		defer watch(m, m.b, m.claim(id), func(g driver.Grant) { m.granted(id, g) })()
	}
	m.begin()
	m.ask(m.a, "first")
	for _, id := range []string{"writer", "second", "third"} {
		m.ask(m.b, id)
	}
	for _, event := range m.order {
		switch event {
		case 0:
			m.end("writer")
		case 1:
			m.end("first")
		case 2:
			m.ask(m.b, "second")
		case 3:
			if m.ask(m.b, "third") {
				m.end("third")
			}
		case 4:
			m.ask(m.a, "fourth")
		}
	}
	for _, id := range []string{"third", "fourth", "second"} {
		for late := time.Now().Add(aWhile); !m.ended[id] && !m.ask(m.b, id); {
			if time.Now().After(late) {
				m.missing("a grant for " + id + ", though only readers are there")
			}
		}
	}
}

func (m *meeting) end(id string) {
	m.mu.Lock()
	m.ended[id] = true
	m.mu.Unlock()
	if err := m.b.Release(m.Context(), []driver.Release{{Claim: m.claim(id)}})[0]; err != nil {
		m.Errorf("release of %s: %v", id, err)
	}
}

func (m *meeting) ask(s driver.Store, id string) bool {
	g := asked(m, s, driver.Ask{Claim: m.claim(id), Wait: true, Span: 1})
	m.granted(id, g)
	return g.OK
}

// granted checks a grant against those before it.
func (m *meeting) granted(id string, g driver.Grant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !g.OK || m.ended[id]: // or a message that came late
		return
	case id == "writer" && !m.ended["first"]:
		m.Errorf("the writer is let in beside the first reader")
	case id == "writer":
		m.writes = g.Fence
	case id != "first" && !m.ended["writer"]:
		m.Errorf("%s is let in before the writer that waits", id)
	case g.Fence <= m.writes:
		m.Errorf("%s has token %d after the writer's %d", id, g.Fence, m.writes)
	}
	for other, token := range m.tokens {
		together := id != "writer" && other != "writer" && (other != "first" || !m.ended["first"])
		if together && g.Fence != token || g.Fence < token {
			m.Errorf("%s has token %d, and %s has %d", id, g.Fence, other, token)
		}
	}
	m.tokens[id] = g.Fence
}
