package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/redislock"
)

const (
	counters = 8 // goroutines of a worker
	countTTL = 3 * time.Second
	countKey = "counter"

	// work is the most that a worker does under the lock, so that most of the
	// time the machine has nothing to do: a waiter that is late has slept.
	work = time.Millisecond
)

// countOn is the work of a worker: it adds to the number in dir, from several
// goroutines, until its input ends. It reads, writes down what it is going to
// write, and writes: three steps that only the lock keeps together.
func countOn(url, dir, name string) error {
	store, err := driver.Open(context.Background(), unhurried(url))
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	number, err := os.OpenFile(filepath.Join(dir, "number"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	c := &counter{journal: &journal{file: file}, number: number}
	c.locks = must.Get(holdfast.New(&recorder{
		Store: store.(*redislock.Store), journal: c.journal, asked: make(map[string]*asked),
	}, &holdfast.Options{TTL: countTTL, Owner: name}))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	for range counters {
		running.Go(func() {
			for ctx.Err() == nil {
				c.count(ctx)
			}
		})
	}
	go c.journal.watchMachine()
	fmt.Println("counting")
	_, err = io.Copy(io.Discard, os.Stdin)
	cancel()
	running.Wait()
	return errors.Join(err, c.locks.Close(), file.Close(), number.Close())
}

type counter struct {
	locks   *holdfast.Locker
	journal *journal
	number  *os.File
}

func (c *counter) count(ctx context.Context) {
	lock, err := c.locks.Lock(ctx, countKey)
	if err != nil {
		if ctx.Err() == nil {
			c.failed(err)
		}
		return
	}
	held := sinceBoot()
	if err := c.increment(lock, held); err != nil {
		c.failed(err)
	}
	c.journal.write(event{What: "free", At: sinceBoot(), Fence: lock.Fence()})
	if err := lock.Unlock(); err != nil {
		c.failed(err)
	}
}

func (c *counter) failed(err error) {
	c.journal.write(event{What: "error", At: sinceBoot(), Text: err.Error()})
}

func (c *counter) increment(lock *holdfast.Lock, held time.Duration) error {
	value, err := readNumber(c.number)
	if err != nil {
		return err
	}
	value++
	c.journal.write(event{What: "hold", At: held, Fence: lock.Fence(), Value: value})
	<-time.After(rand.N(work))
	if err := lock.Err(); err != nil {
		return err
	}
	_, err = c.number.WriteAt(fmt.Appendf(nil, "%012d", value), 0)
	return err
}

func readNumber(file *os.File) (int, error) {
	text := make([]byte, 12)
	switch n, err := file.ReadAt(text, 0); {
	case n == 0 && err == io.EOF:
		return 0, nil
	case err != nil:
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// A recorder is a store that writes down when each claim joined the queue
// and with which token it left it.
type recorder struct {
	*redislock.Store
	journal *journal

	mu    sync.Mutex
	asked map[string]*asked // by id
}

type asked struct {
	sent, stood time.Duration
	granted     bool
}

// Acquire implements [driver.Store].
func (r *recorder) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	r.mu.Lock()
	claim := r.asked[a.ID]
	if claim == nil {
		claim = &asked{sent: sinceBoot()}
		r.asked[a.ID] = claim
	}
	r.mu.Unlock()
	g, err := r.Store.Acquire(ctx, a)
	r.mu.Lock()
	if err == nil && !g.OK && a.Wait && claim.stood == 0 {
		claim.stood = sinceBoot()
	}
	r.mu.Unlock()
	r.granted(a.ID, g)
	return g, err
}

// Watch implements [driver.Watcher].
func (r *recorder) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	return r.Store.Watch(ctx, c, func(g driver.Grant) {
		r.granted(c.ID, g)
		wake(g)
	})
}

// Release implements [driver.Store].
func (r *recorder) Release(ctx context.Context, rs []driver.Release) []error {
	errs := r.Store.Release(ctx, rs)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, release := range rs {
		delete(r.asked, release.ID)
	}
	return errs
}

func (r *recorder) granted(id string, g driver.Grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.asked[id]
	if !g.OK || a == nil || a.granted {
		return
	}
	a.granted = true
	r.journal.write(event{What: "grant", Sent: a.sent, Stood: a.stood, At: sinceBoot(), Fence: g.Fence})
}
