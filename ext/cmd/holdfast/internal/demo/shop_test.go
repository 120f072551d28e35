package demo

import (
	"errors"
	"path/filepath"
	"testing"
)

func newShop(t *testing.T) *shop {
	t.Helper()
	s, err := openShop(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	if err := errors.Join(s.create(t.Context()), s.offer(t.Context(), "hat", 10)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shop) check(t *testing.T, stock, sold int) {
	t.Helper()
	left, err := s.stock(t.Context(), "hat")
	orders, err2 := s.sold(t.Context(), "hat")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if left != stock || orders != sold {
		t.Errorf("stock %d, sold %d, want %d and %d", left, orders, stock, sold)
	}
}

// TestFence: a smaller token changes nothing, neither the stock nor the orders.
func TestFence(t *testing.T) {
	s := newShop(t)
	for _, step := range []struct {
		token       uint64
		left        int
		stale       bool
		stock, sold int
	}{
		{token: 5, left: 9, stock: 9, sold: 1},
		{token: 5, left: 8, stock: 8, sold: 2}, // a holder may write twice
		{token: 4, left: 9, stale: true, stock: 8, sold: 2},
		{token: 6, left: 7, stock: 7, sold: 3},
		{token: 5, left: 8, stale: true, stock: 7, sold: 3},
	} {
		err := s.save(t.Context(), order{item: "hat", buyer: "Ann", left: step.left, token: step.token, fenced: true})
		if errors.Is(err, errStale) != step.stale || err != nil && !step.stale {
			t.Errorf("token %d: error %v, want stale %v", step.token, err, step.stale)
		}
		s.check(t, step.stock, step.sold)
	}
}

// TestWithoutFence: the same write lands if nobody looks at the token.
func TestWithoutFence(t *testing.T) {
	s := newShop(t)
	for i, token := range []uint64{5, 4} {
		if err := s.save(t.Context(), order{item: "hat", left: 9, token: token}); err != nil {
			t.Fatal(err)
		}
		s.check(t, 9, i+1)
	}
}
