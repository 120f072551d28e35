package etcdlock_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// TestReadersMeet has readers on both sides of a writer that gives up: they hold at
// the same time then, and have one token, also those who join when the first have
// gone.
func TestReadersMeet(t *testing.T) {
	t.Parallel()
	a, b := openStore(t, shared.URL()), openStore(t, shared.URL())
	reader := func(id string) driver.Claim {
		c := waiting("readers meet", id)
		c.Weight = 1
		return c
	}
	end := func(s driver.Store, c driver.Claim) {
		t.Helper()
		if err := s.Release(t.Context(), []driver.Claim{c})[0]; err != nil {
			t.Fatalf("release of %s: %v", c.ID, err)
		}
	}
	phase := granted(t, a, reader("first")).Fence
	writer := waiting("readers meet", "writer")
	refused(t, a, writer)
	for _, id := range []string{"second", "third"} {
		refused(t, b, reader(id))
	}
	wakes := make(chan driver.Grant, 8)
	stop, err := b.Watch(t.Context(), reader("third"), func(g driver.Grant) { wakes <- g })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	refused(t, b, reader("third"))
	end(a, writer)
	<-wakes
	same := func(s driver.Store, id string) {
		t.Helper()
		if g := granted(t, s, reader(id)); g.Fence != phase {
			t.Errorf("%s has token %d, the first %d", id, g.Fence, phase)
		}
	}
	same(b, "third") // before the one before it has asked
	same(b, "second")
	same(a, "fourth")
	end(a, reader("first"))
	end(b, reader("second"))
	end(b, reader("third"))
	same(b, "fifth")
	end(a, reader("fourth"))
	end(b, reader("fifth"))
	if g := granted(t, a, exclusive("readers meet", "next writer")); g.Fence <= phase {
		t.Errorf("a writer has token %d after %d", g.Fence, phase)
	}
}

// TestReadersInEveryOrder has two readers wait behind a writer that waits behind
// another reader, and lets everything that may happen then happen in every order:
// the writer gives up, or has its turn and ends; the first reader ends; those who
// wait ask, the last of them only to go at once; one more comes. No reader holds
// beside the writer, all that hold together have one token, and none is smaller than
// one before it.
func TestReadersInEveryOrder(t *testing.T) {
	t.Parallel()
	a, b := openStore(t, shared.URL()+"?prefix=orders/"), openStore(t, shared.URL()+"?prefix=orders/")
	permute([]int{0, 1, 2, 3, 4}, 0, func(order []int) {
		order = slices.Clone(order)
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				m := &meeting{T: t, a: a, b: b, order: order, key: rand.Text(), ended: make(map[string]bool), tokens: make(map[string]uint64)}
				began := time.Now()
				wrong := m.run()
				// Who is silent for longer loses its place.
				if time.Since(began) < 2*time.Second || n == 10 {
					for _, text := range wrong {
						t.Error(text)
					}
					return
				}
			}
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
	*testing.T
	a, b  driver.Store
	key   string
	order []int

	mu     sync.Mutex
	ended  map[string]bool
	tokens map[string]uint64 // of all that were granted
	writes uint64            // the writer's token, once it holds
	wrong  []string
}

func (m *meeting) claim(id string) driver.Claim {
	c := waiting(m.key, id+m.key)
	if id != "writer" {
		c.Weight = 1
	}
	return c
}

// run returns what was wrong.
func (m *meeting) run() []string {
	m.ask(m.a, "first")
	for _, id := range []string{"writer", "second", "third"} {
		stop, err := m.b.(driver.Watcher).Watch(m.Context(), m.claim(id), func(g driver.Grant) { m.granted(id, g) })
		if err != nil {
			m.Fatal(err)
		}
		defer stop()
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
		if !m.ended[id] {
			eventually(m.T, "grant", func() error {
				if !m.ask(m.b, id) {
					return fmt.Errorf("%s is refused though only readers are there", id)
				}
				return nil
			})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

func (m *meeting) end(id string) {
	m.mu.Lock()
	m.ended[id] = true
	m.mu.Unlock()
	if err := m.b.Release(m.Context(), []driver.Claim{m.claim(id)})[0]; err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.fail("release of %s: %v", id, err)
	}
}

func (m *meeting) fail(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

func (m *meeting) ask(s driver.Store, id string) bool {
	g := asked(m.T, s, m.claim(id))
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
		m.fail("the writer is let in beside the first reader")
	case id == "writer":
		m.writes = g.Fence
	case id != "first" && !m.ended["writer"]:
		m.fail("%s is let in before the writer that waits", id)
	case g.Fence <= m.writes:
		m.fail("%s has token %d after the writer's %d", id, g.Fence, m.writes)
	}
	for other, token := range m.tokens {
		together := id != "writer" && other != "writer" && (other != "first" || !m.ended["first"])
		if together && g.Fence != token || g.Fence < token {
			m.fail("%s has token %d, and %s has %d", id, g.Fence, other, token)
		}
	}
	m.tokens[id] = g.Fence
}
