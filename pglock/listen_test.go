package pglock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// Nothing is sent to a waiter that cannot listen. The waiter polls, and does not write the
// same row again at once.
func TestWaiterThatCannotListen(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	proxy.Refuse(true)
	url := server.URL() + "&table=not_listening"
	var stores []*Store
	for _, at := range []string{url, url + "&listen=" + proxy.Addr()} {
		s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at) })
		if err := s.(*Store).Create(sessiontest.Bounded(t)); err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s.(*Store))
	}
	// A waiter counts on messages until the first try to listen has failed.
	if _, err := stores[1].Watch(sessiontest.Bounded(t), driver.Claim{Key: "other", ID: "id"}, func(driver.Grant) {}); err == nil {
		t.Fatal("the waiter can listen")
	}
	conn, err := pgx.Connect(sessiontest.Bounded(t), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })

	refused := make(chan struct{}, 1000)
	trace := &holdfast.Trace{Tried: func(e holdfast.Event) {
		if errors.Is(e.Err, holdfast.ErrHeld) {
			refused <- struct{}{}
		}
	}}
	a, b := must.Get(holdfast.New(stores[0], nil)), must.Get(holdfast.New(stores[1], &holdfast.Options{Trace: trace}))
	t.Cleanup(func() { a.Close(); b.Close() })
	held := sessiontest.Locked(t, a, "key")
	done, began := make(chan error, 1), time.Now()
	go func() {
		l, err := servers.Patient(sessiontest.Bounded(t), b.Lock, "key")
		if err == nil {
			err = unlocking.Release(l.Unlock)
		}
		done <- err
	}()
	var versions []int64
	for len(versions) < 5 { // after 0, 5, 10, 20 and 40 milliseconds
		select {
		case <-refused:
		case err := <-done:
			t.Fatalf("the waiter was not refused five times: %v", err)
		}
		var version int64
		var claims string
		if err := conn.QueryRow(sessiontest.Bounded(t), "SELECT version, claims FROM not_listening WHERE name = 'key'").Scan(&version, &claims); err != nil {
			t.Fatal(err)
		}
		_, line, ok := strings.Cut(claims, `"line"`)
		if strings.Contains(line, `"to"`) {
			t.Fatalf("a waiter that hears nothing is in the queue as %s", claims)
		}
		if ok { // A slow machine may have cost the waiter its place.
			versions = append(versions, version)
		}
	}
	// On a slow machine a place is renewed, after an eighth of the time for which it lasts.
	renewed := time.Since(began) / (driver.Claim{TTL: time.Hour}.Alive() / 8)
	if wrote := len(slices.Compact(versions)) - 1; wrote > 2+int(renewed) {
		t.Errorf("four requests wrote %d times", wrote)
	}
	if err := unlocking.Release(held.Unlock); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
