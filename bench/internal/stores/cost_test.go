package stores

import (
	"context"
	"flag"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

var costs = flag.Duration("costs", 0, "how long to count each cost of held locks and waiters, such as 1m")

// perLock is what the pages in docs/stores say that a lock and its unlock cost, for a
// key that was locked before.
var perLock = map[string]float64{
	"redis": 2, "memcached": 4, "postgres": 2, "postgres-session": 2, "mysql": 2, "mysql-session": 4, "etcd": 2, "nats": 2, "s3": 2, "gcs": 2, "dynamodb": 2, "azblob": 2, "zookeeper": 3,
	"redlock": 10,
}

// TestCosts counts what locks cost a real server. With -costs it also counts what an
// idle process, held locks and waiters cost, and logs that for an hour; of etcd it
// counts writes, where the page has messages.
func TestCosts(t *testing.T) {
	for _, st := range All() {
		if want := perLock[st.Name]; want > 0 {
			t.Run(st.Name, func(t *testing.T) {
				if st.Name == "redlock" && *costs == 0 {
					t.Skip("its servers count after 15 s only, and a slow one costs a second round")
				}
				if testing.Short() && st.Name != "redis" && *costs == 0 {
					t.Skip("the same on one more store: make prove")
				}
				t.Parallel()
				testCosts(t, st, want)
			})
		}
	}
}

func testCosts(t *testing.T, st Store, want float64) {
	const ttl, locks = 15 * time.Second, 200
	side, server := st.Sides[0], st.Start(t, 15*time.Second)
	open := func() *Library {
		l, err := side.Open(server.At, ttl)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	lock := func(l *Library, key string) func() error {
		ask := func(ctx context.Context, key string, _ ...any) (func() error, error) { return l.Lock(ctx, key) }
		unlock, err := servers.Patient(t.Context(), ask, key)
		if err != nil {
			t.Fatal(err)
		}
		return unlock
	}
	free := func(unlock func() error) {
		if err := unlocking.Release(unlock); err != nil {
			t.Error(err)
		}
	}
	holder, other := open(), open()
	free(lock(holder, "key"))
	free(lock(other, "another"))
	own := -server.Count(side) // what one reading costs
	own += server.Count(side)

	before := server.Count(side)
	for range locks {
		free(lock(holder, "key"))
	}
	if got := float64(server.Count(side)-before-own) / locks; math.Round(got) != want {
		t.Errorf("a lock and its unlock cost %.2f %s, want %v", got, st.Cost, want)
	}
	if *costs == 0 {
		return
	}
	hour := func(what string) {
		before := server.Count(side)
		<-time.After(*costs)
		n := server.Count(side) - before - own
		t.Logf("%s: %.0f %s an hour", what, float64(n)*float64(time.Hour)/float64(*costs), st.Cost)
	}
	hour("two idle processes")
	held := []func() error{lock(holder, "key")}
	hour("one of them holds one lock")
	waited := make(chan error)
	go func() {
		unlock, err := other.Lock(t.Context(), "key")
		if err == nil {
			err = unlocking.Release(unlock)
		}
		waited <- err
	}()
	hour("and the other waits for it")
	free(held[0])
	if err := <-waited; err != nil {
		t.Error(err)
	}
	for i := range 1000 {
		held = append(held, lock(holder, fmt.Sprint("key", i)))
	}
	hour("one holds 1,000 locks")
	for _, unlock := range held[1:] {
		free(unlock)
	}
}
