package pglock

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// lockerOn opens a locker whose tokens come from a sequence, which it makes.
func lockerOn(t *testing.T, at *pgx.ConnConfig, sequence string) *holdfast.Locker {
	t.Helper()
	s := must.Get(NewSession(at, &SessionOptions{Sequence: sequence}))
	lk := must.Get(holdfast.New(s, &holdfast.Options{TTL: sessiontest.Patience}))
	t.Cleanup(func() { lk.Close() })
	if err := s.Create(sessiontest.Bounded(t)); err != nil {
		t.Fatal(err)
	}
	return lk
}

// TestSessionSequences has two sequences in one database, one of which is always
// in use. The other gives tokens that grow all the same, also over a crash after
// which the first is in use again before it.
func TestSessionSequences(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	t.Parallel()
	pg := servers.StartPostgres(t, "wal_writer_delay = 10s")
	earlier := uint64(time.Now().UnixMicro())
	for range 2 {
		at := config(t, pg.URL())
		sessiontest.Locked(t, lockerOn(t, at, "first"), "key")
		other := lockerOn(t, at, "second")
		for range 100 {
			l := sessiontest.Locked(t, other, "key") // The other key of this name is held.
			if l.Fence() <= earlier {
				t.Fatalf("token %d came after %d", l.Fence(), earlier)
			}
			earlier = l.Fence()
			if err := unlocking.Release(l.Unlock); err != nil {
				t.Fatal(err)
			}
		}
		pg.Kill()
		pg.Restart()
	}
}

// TestSessionSequenceNames gives one sequence several names.
func TestSessionSequenceNames(t *testing.T) {
	t.Parallel()
	server.Must("CREATE SCHEMA names")
	at := config(t, server.URL())
	at.RuntimeParams["search_path"] = "names"
	key := "names of sequences"
	sessiontest.Locked(t, lockerOn(t, at, "numbers"), key)
	full := lockerOn(t, config(t, server.URL()), "names.numbers")
	if _, err := servers.Patient(sessiontest.Bounded(t), full.TryLock, key); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("the same sequence under its full name: %v, want ErrHeld", err)
	}
	sessiontest.Locked(t, lockerOn(t, config(t, server.URL()), "numbers"), key) // in another schema, so another
}
