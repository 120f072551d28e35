package holdfast_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

// A nested call that does not pass on the context of the lock waits for itself.
func TestNestedCallIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		lk := must.Get(holdfast.New(memlock.New(), &holdfast.Options{Owner: "me", Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		defer lk.Close()
		outer, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		since := time.Now().Format(time.RFC3339)
		nothing := func(context.Context) error { return nil }
		err := lk.Do(outer, "k", func(context.Context) error { return lk.Do(outer, "k", nothing) })
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `held by this Locker itself, "me" since `+since) {
			t.Errorf("got %v", err)
		}
		if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "stuck_test.go:") || !strings.Contains(got, "key=k") {
			t.Errorf("the log has %q, want one warning with the place of the call", got)
		}
	})
}

// The same for a lock that is shared, where the call asks the store.
func TestNestedWriterIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lk := must.Get(holdfast.New(memlock.New(), &holdfast.Options{Owner: "me"}))
		defer lk.Close()
		reader, err := lk.Lock(t.Context(), "k", holdfast.Shared())
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Unlock()
		_, err = lk.Lock(t.Context(), "k", holdfast.Wait(time.Second))
		if !errors.Is(err, holdfast.ErrHeld) || !strings.Contains(err.Error(), "held by this Locker itself") {
			t.Errorf("got %v", err)
		}
	})
}

// The same for slots, if this Locker holds so many that the call cannot fit.
func TestNestedSlotsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lk := must.Get(holdfast.New(memlock.New(), &holdfast.Options{Owner: "me"}))
		defer lk.Close()
		wait := []holdfast.LockOption{holdfast.Slots(2), holdfast.Wait(time.Second)}
		var err error
		for range 3 {
			var l *holdfast.Lock
			if l, err = lk.Lock(t.Context(), "k", wait...); err == nil {
				defer l.Unlock()
			}
		}
		if !errors.Is(err, holdfast.ErrHeld) || !strings.Contains(err.Error(), "held by this Locker itself") {
			t.Errorf("got %v", err)
		}
	})
}

// An error shows so much of a key that it can be recognized.
func TestErrorsCutLongKeys(t *testing.T) {
	lk := must.Get(holdfast.New(memlock.New(), nil))
	defer lk.Close()
	key := strings.Repeat("k", 10<<20)
	_, err := lk.Lock(t.Context(), key)
	if !errors.Is(err, holdfast.ErrInvalidKey) || len(err.Error()) > 300 || !strings.Contains(err.Error(), "10485760 bytes") {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}
