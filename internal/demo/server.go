package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// A server sells one item.
type server struct {
	job
	locks *holdfast.Locker // nil if the guard needs no locks
	guard func(context.Context, sale) error
}

func newServer(ctx context.Context, j job) (*server, error) {
	s := &server{job: j}
	var err error
	if j.Guard == Holdfast || j.Guard == heedless {
		owner := fmt.Sprintf("%s (pid %d)", j.Name, os.Getpid())
		s.locks, err = open(ctx, j.Store, &holdfast.Options{TTL: j.TTL, Owner: owner, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
	}
	s.guard, err = j.Guard.guarded(s.locks, j.Key)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// open opens the store, and tries again while the store does not answer, as a service that is
// restarted does. All servers of a sale start at once, which keeps a small machine busy.
func open(ctx context.Context, store string, opts *holdfast.Options) (*holdfast.Locker, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime/2)
	defer cancel()
	for {
		locks, err := holdfast.Open(ctx, store, opts)
		if err == nil || ctx.Err() != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return locks, err
		}
	}
}

func (s *server) close() error {
	if s.locks == nil {
		return nil
	}
	return s.locks.Close()
}

// An answer is the reply to a buyer.
type answer struct {
	Server string
	PID    int
	Token  uint64 // of the lock; 0 without a lock
	Sold   bool
	Stale  bool   // the fence refused the write
	Lost   string // how the lock was lost; "" if the lock was not lost
	Error  string // why the item was not sold, or an error after the sale
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

// sell is the same in every round: look, take the money, write. The sale is right only if
// nobody else writes between the look and the write.
func (s *server) sell(ctx context.Context, buyer string, token uint64) error {
	shop := counter{s.Warehouse, s.Item}
	left, err := shop.stock(ctx)
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
	return shop.save(ctx, order{
		Buyer: buyer, Server: s.Name,
		Left: left - 1, Token: token, Fenced: s.Fenced,
	})
}
