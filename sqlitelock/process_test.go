package sqlitelock_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
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

// Who waits behind a process that is killed gets the lock, and a larger token.
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

// Who waits behind one who was killed while waiting gets the lock in its turn.
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
	for begun := time.Now(); time.Since(begun) < patience; <-time.After(time.Millisecond) {
		holders, err := lk.Holders(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		waiting := slices.DeleteFunc(holders, func(h driver.Holder) bool { return !h.Waiting })
		if len(waiting) == want {
			return
		}
	}
	t.Fatalf("there are never %d in line", want)
}
