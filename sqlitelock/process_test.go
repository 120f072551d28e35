package sqlitelock_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// crowd lets processes count on keys, and returns how often each could.
func crowd(t testing.TB, workers []*worker, o order) (each []int) {
	t.Helper()
	for _, w := range workers {
		w.order(o)
	}
	for _, w := range workers {
		each = append(each, w.report().Locks)
	}
	return each
}

func hireAll(t testing.TB, n int, url string, ttl time.Duration) (workers []*worker) {
	t.Helper()
	for range n {
		workers = append(workers, hire(t, url, ttl))
	}
	return workers
}

// Four processes never hold the same key at a time, and each gets its locks.
func TestProcessesCount(t *testing.T) {
	const times = 20
	many := make([]string, 8)
	for i := range many {
		many[i] = fmt.Sprint("key", i)
	}
	for _, keys := range [][]string{{"key"}, many} {
		t.Run(fmt.Sprint(len(keys)), func(t *testing.T) {
			dir := t.TempDir()
			workers := hireAll(t, 4, "sqlite://"+filepath.Join(dir, "locks.db"), 15*time.Second)
			each := crowd(t, workers, order{Do: "count", Dir: dir, Keys: keys, Goroutines: 4, For: patience * 3 / 4, Times: times})
			got, want := 0, 0
			for _, n := range each {
				want += n
			}
			for _, key := range keys {
				n, err := counted(filepath.Join(dir, key))
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
			if got != want {
				t.Errorf("%v locks have counted to %d, want %d", each, got, want)
			}
			if slices.Min(each) == 0 {
				t.Errorf("a process got no lock while the others got %v", each)
			}
			t.Logf("locks: %v", each)
		})
	}
}

// killTTL is how long the lock of a process lasts that is killed. It is long enough for a
// slow machine to keep its locks.
const killTTL = 15 * time.Second

// A waiter behind a killed process gets the lock, and a larger token.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	url := "sqlite://" + filepath.Join(t.TempDir(), "locks.db")
	workers := hireAll(t, 2, url, killTTL)
	first := workers[0].do(lock("key"))
	workers[1].order(lock("key"))
	inLine(t, url, "key", 1)
	workers[0].Process.Kill()
	if second := workers[1].report(); second.Fence <= first.Fence {
		t.Errorf("the token fell from %d to %d", first.Fence, second.Fence)
	}
	workers[1].do(unlock("key"))
}

// A waiter behind a process that was killed while waiting gets the lock in its turn.
func TestKilledWaiter(t *testing.T) {
	t.Parallel()
	url := "sqlite://" + filepath.Join(t.TempDir(), "locks.db")
	workers := hireAll(t, 3, url, killTTL)
	first := workers[0].do(lock("key"))
	for i, w := range workers[1:] {
		w.order(lock("key"))
		inLine(t, url, "key", i+1)
	}
	workers[1].Process.Kill()
	workers[0].do(unlock("key"))
	if third := workers[2].report(); third.Fence <= first.Fence {
		t.Errorf("the token fell from %d to %d", first.Fence, third.Fence)
	}
	workers[2].do(unlock("key"))
}

// inLine returns when so many claims wait for a key.
func inLine(t testing.TB, url, key string, want int) {
	t.Helper()
	lk, err := holdfast.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lk.Close()
	servers.Until(t, fmt.Sprintf("%d claims in the queue", want), func() bool {
		holders := servers.Insist(t, func(ctx context.Context) ([]driver.Holder, error) { return lk.Holders(ctx, key) })
		waiting := slices.DeleteFunc(holders, func(h driver.Holder) bool { return !h.Waiting })
		return len(waiting) == want
	})
}
