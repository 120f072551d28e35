package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// A server sells one item.
type server struct {
	job
	shop  *shop
	locks *holdfast.Locker // nil if the guard needs none
	guard func(context.Context, sale) error
}

func newServer(ctx context.Context, j job) (*server, error) {
	shop, err := openShop(j.Shop)
	if err != nil {
		return nil, err
	}
	s := &server{job: j, shop: shop}
	if j.Guard == Holdfast || j.Guard == heedless {
		owner := fmt.Sprintf("%s (pid %d)", j.Name, os.Getpid())
		s.locks, err = holdfast.Open(ctx, j.Store, &holdfast.Options{TTL: j.TTL, Owner: owner})
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	s.guard, err = j.Guard.guarded(s.locks, j.Key)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *server) close() error {
	var err error
	if s.locks != nil {
		err = s.locks.Close()
	}
	return errors.Join(err, s.shop.close())
}

// An answer is what a buyer gets.
type answer struct {
	Server string
	PID    int
	Token  uint64 // of the lock; 0 if there was none
	Sold   bool
	Stale  bool   // the fence refused the write
	Lost   string // how the lock was lost, if it was
	Error  string // why it was not sold, or what is wrong though it was
}

// ServeHTTP sells one item to one buyer.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := answer{Server: s.Name, PID: os.Getpid()}
	err := s.guard(r.Context(), func(ctx context.Context, token uint64) error {
		a.Token = token
		err := s.sell(ctx, r.FormValue("buyer"), token)
		a.Sold = err == nil
		return err
	})
	status := http.StatusOK
	switch {
	case errors.Is(err, errSoldOut):
		status = http.StatusConflict
	case errors.Is(err, errStale):
		a.Stale, status = true, http.StatusPreconditionFailed
	case err != nil:
		status = http.StatusInternalServerError
	}
	if lost := (*holdfast.LostError)(nil); errors.As(err, &lost) {
		a.Lost = lost.Error()
	}
	if err != nil {
		a.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(a)
}

// sell is the same in every round: look, take the money, write. It is right as
// long as nobody else writes between the look and the write.
func (s *server) sell(ctx context.Context, buyer string, token uint64) error {
	left, err := s.shop.stock(ctx, s.Item)
	if err != nil {
		return err
	}
	if left < 1 {
		return errSoldOut
	}
	c := charge{Server: s.Name, PID: os.Getpid(), Buyer: buyer, Token: token, Left: left}
	if err := c.send(ctx, s.Bank); err != nil {
		return err
	}
	return s.shop.save(ctx, order{
		item: s.Item, buyer: buyer, server: s.Name,
		left: left - 1, token: token, fenced: s.Fenced,
	})
}
