package mysqllock

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/doorbell"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// TestSessionWaiters counts the connections of 1,000 waiters, or of a tenth in the short form:
// one for each process, and those that wait for locks.
func TestSessionWaiters(t *testing.T) {
	t.Parallel()
	t.Run("woken", func(t *testing.T) { sessionWaiters(t, false, 2+doorbell.MaxWaits) })
	t.Run("polling", func(t *testing.T) { sessionWaiters(t, true, 2) })
}

func sessionWaiters(t *testing.T, poll bool, connections int) {
	waiters := 1000
	if testing.Short() {
		waiters = 100
	}
	maria := shared.Database(t)
	refused := make(map[string]chan struct{}) // by key, when its waiter has asked
	var held []*holdfast.Lock
	holder := locker(t, maria.URL(), &holdfast.Options{TTL: sessiontest.Patience})
	for i := range waiters {
		held = append(held, sessiontest.Locked(t, holder, fmt.Sprint("waiters/", i)))
		refused[held[i].Key()] = make(chan struct{}, 1)
	}
	waiting := newSession(t, config(t, maria.URL()))
	waiting.server.polls = poll
	lk := sessiontest.Locker(t, waiting, &holdfast.Options{TTL: sessiontest.Patience, Trace: &holdfast.Trace{Tried: func(e holdfast.Event) {
		if !errors.Is(e.Err, holdfast.ErrHeld) {
			return
		}
		select {
		case refused[e.Key] <- struct{}{}:
		default:
		}
	}}})
	ctx := t.Context() // no limit of its own: a busy machine needs minutes for 1,000 waiters
	served := make(chan error, waiters)
	for _, before := range held {
		go func() {
			l, err := servers.Patient(ctx, lk.Lock, before.Key())
			if err == nil {
				err = unlocking.Release(l.Unlock)
			}
			served <- err
		}()
	}
	for key, asked := range refused {
		select {
		case <-asked:
		case err := <-served:
			t.Fatalf("a waiter was served before %s was asked for: %v", key, err)
		}
	}
	const count = "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
	// The server may still end connections that are closed.
	want := fmt.Sprint(connections)
	servers.Until(t, fmt.Sprint(want, " connections of two processes, one with ", waiters, " waiters"), func() bool { return maria.Must(count) == want })
	for _, l := range held {
		if err := unlocking.Release(l.Unlock); err != nil {
			t.Error(err)
		}
	}
	for range waiters {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}
