package demo

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// opened returns a shop that has ten hats on sale, and where servers buy them.
func opened(t *testing.T) (*shop, counter) {
	t.Helper()
	s := newShop()
	s.offer("hat", 10)
	door := httptest.NewServer(warehouse(s))
	t.Cleanup(door.Close)
	return s, counter{door.URL, "hat"}
}

func (s *shop) check(t *testing.T, stock, sold int) {
	t.Helper()
	left, orders, err := s.look("hat")
	if err != nil {
		t.Fatal(err)
	}
	if left != stock || orders != sold {
		t.Errorf("stock %d, sold %d, want %d and %d", left, orders, stock, sold)
	}
}

// TestFence: a smaller token changes nothing, neither the stock nor the orders.
func TestFence(t *testing.T) {
	s, door := opened(t)
	for _, step := range []struct {
		token       uint64
		left        int
		stale       bool
		stock, sold int
	}{
		{token: 5, left: 9, stock: 9, sold: 1},
		{token: 5, left: 8, stock: 8, sold: 2}, // a holder may write twice
		{token: 4, left: 9, stale: true, stock: 8, sold: 2},
		{token: 1 << 63, left: 7, stock: 7, sold: 3},
		{token: 1<<63 - 1, left: 8, stale: true, stock: 7, sold: 3},
	} {
		err := door.save(t.Context(), order{Buyer: "Ann", Left: step.left, Token: step.token, Fenced: true})
		if errors.Is(err, errStale) != step.stale || err != nil && !step.stale {
			t.Errorf("token %d: error %v, want stale %v", step.token, err, step.stale)
		}
		s.check(t, step.stock, step.sold)
	}
}

// TestWithoutFence: the same write lands if nobody looks at the token.
func TestWithoutFence(t *testing.T) {
	s, door := opened(t)
	for i, token := range []uint64{5, 4} {
		if err := door.save(t.Context(), order{Left: 9, Token: token}); err != nil {
			t.Fatal(err)
		}
		if left, err := door.stock(t.Context()); err != nil || left != 9 {
			t.Errorf("the server sees a stock of %d (%v), want 9", left, err)
		}
		s.check(t, 9, i+1)
	}
}

func TestUnknownItem(t *testing.T) {
	_, door := opened(t)
	door.item = "no hat"
	_, err := door.stock(t.Context())
	for _, err := range []error{err, door.save(t.Context(), order{})} {
		if err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("error %v, want 404", err)
		}
	}
}
