package etcdlock_test

import (
	"testing"

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
