package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestSessionWaiters counts the connections of 1,000 who wait: one for each
// process.
func TestSessionWaiters(t *testing.T) {
	t.Parallel()
	const waiters = 1000
	maria := servers.StartMariaDB(t)
	refused := make(map[string]chan struct{}) // by key, when its waiter has asked
	var held []*holdfast.Lock
	holder := locker(t, maria.URL(), holdfast.Options{TTL: patience})
	for i := range waiters {
		held = append(held, locked(t, holder, fmt.Sprint("waiters/", i)))
		refused[held[i].Key()] = make(chan struct{}, 1)
	}
	lk := locker(t, maria.URL(), holdfast.Options{TTL: patience, Trace: &holdfast.Trace{Tried: func(e holdfast.Event) {
		if !errors.Is(e.Err, holdfast.ErrHeld) {
			return
		}
		select {
		case refused[e.Key] <- struct{}{}:
		default:
		}
	}}})
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	var all sync.WaitGroup
	for _, before := range held {
		all.Go(func() {
			l, err := servers.Patient(ctx, lk.Lock, before.Key())
			if err == nil {
				err = l.Unlock()
			}
			if err != nil {
				t.Errorf("%s: %v", before.Key(), err)
			}
		})
	}
	for key, asked := range refused {
		select {
		case <-asked:
		case <-ctx.Done():
			t.Fatalf("nobody has asked for %s", key)
		}
	}
	const count = "SELECT count(*) FROM information_schema.processlist WHERE db = 'holdfast' AND id <> connection_id()"
	if n := maria.Must(count); n != "2" {
		t.Errorf("two processes, one with %d waiters, have %s connections", waiters, n)
	}
	for _, l := range held {
		if err := l.Unlock(); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}
