package pglock

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// A waiter that cannot listen is told nothing, so nothing is sent to it; it asks,
// and does not write the same again at once.
func TestWaiterThatCannotListen(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	proxy.Refuse(true)
	url := server.URL() + "&table=deaf"
	var stores []*Store
	for _, at := range []string{url, url + "&listen=" + proxy.Addr()} {
		s, err := driver.Open(bounded(t), at)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.(*Store).Create(bounded(t)); err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s.(*Store))
	}
	conn, err := pgx.Connect(bounded(t), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })

	refused := make(chan struct{}, 100)
	trace := &holdfast.Trace{Tried: func(holdfast.Event) { refused <- struct{}{} }}
	a, b := holdfast.New(stores[0], nil), holdfast.New(stores[1], &holdfast.Options{Trace: trace})
	t.Cleanup(func() { a.Close(); b.Close() })
	held := locked(t, a, "key")
	done := make(chan error, 1)
	go func() {
		l, err := b.Lock(bounded(t), "key")
		if err == nil {
			err = l.Unlock()
		}
		done <- err
	}()
	var versions []int64
	for range 5 { // after 0, 5, 10, 20 and 40 milliseconds
		<-refused
		var version int64
		var claims string
		if err := conn.QueryRow(bounded(t), "SELECT version, claims FROM deaf WHERE name = 'key'").Scan(&version, &claims); err != nil {
			t.Fatal(err)
		}
		if _, line, ok := strings.Cut(claims, `"line"`); !ok || strings.Contains(line, `"to"`) {
			t.Fatalf("a waiter that hears nothing is in line as %s", claims)
		}
		versions = append(versions, version)
	}
	if wrote := versions[4] - versions[0]; wrote > 2 { // On a slow machine a place may be renewed.
		t.Errorf("four times asking wrote %d times", wrote)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
