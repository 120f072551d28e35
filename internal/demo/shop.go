package demo

import (
	"errors"
	"fmt"
	"sync"
)

// These errors are answers to a buyer, not failures.
var (
	errSoldOut = errors.New("sold out")
	errStale   = errors.New("refused by the fence: a later holder has written")
)

// A shop is the database that the servers share. Every method is a transaction. No
// transaction spans two methods.
type shop struct {
	mu    sync.Mutex
	items map[string]*item
}

// An item is a row of the shop.
type item struct {
	stock  int
	fence  uint64 // the largest token of a write
	orders int
}

// An order is an item for a buyer.
type order struct {
	Buyer, Server string

	Left   int    // the stock after the order, as the server believes
	Token  uint64 // of the lock, 0 without one
	Fenced bool   // refuse a token that is smaller than an earlier token
}

func newShop() *shop { return &shop{items: make(map[string]*item)} }

// offer puts a new item on sale.
func (s *shop) offer(name string, stock int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[name] = &item{stock: stock}
}

// look returns the row of an item: the stock that servers write, and the number of orders,
// which no race can change.
func (s *shop) look(name string) (left, sold int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.items[name]
	if !ok {
		return 0, 0, fmt.Errorf("the shop has no item %q", name)
	}
	return i.stock, i.orders, nil
}

// save writes the new stock and the order in one transaction.
func (s *shop) save(name string, o order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.items[name]
	if !ok {
		return fmt.Errorf("the shop has no item %q", name)
	}
	if o.Fenced {
		if o.Token < i.fence {
			return fmt.Errorf("%w (token %d)", errStale, o.Token)
		}
		i.fence = o.Token
	}
	i.stock = o.Left
	i.orders++
	return nil
}
