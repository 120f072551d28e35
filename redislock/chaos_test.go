package redislock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/redislock"
)

// TestChaos lets 8 processes of 8 goroutines count under one lock, while every
// second connections are cut and the server forgets its scripts, and every now
// and then a process is killed, each second time the one that holds the lock.
//
// $HOLDFAST_CHAOS is how long, 10s unless it is set. If it is, waiters must also
// be as quick as we promise; in a short run beside other tests they need only
// show that none has slept until a TTL ended.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s: make prove")
	}
	length, bound := 10*time.Second, 2*time.Second
	if text := os.Getenv("HOLDFAST_CHAOS"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		bound = 100 * time.Millisecond
	}
	const workers = 8
	c := newChaos(t, workers)
	c.run(length, min(length/4, 5*time.Second))
	h := c.history()
	h.checkTokens(t)
	h.skipIfStopped(t)
	h.checkErrors(t)
	h.checkTurns(t, c.number())
	h.checkOrder(t, c.cuts)
	h.checkGaps(t, bound)
	h.checkEffort(t, c.workers[:workers], int(length/time.Second))
}

// chaos is a run of workers and what was done to them.
type chaos struct {
	t       *testing.T
	server  *servers.Redis
	dir     string
	store   *redislock.Store
	working []*worker
	workers []*worker // all that ever were
	cuts    []span    // of one connection each
}

type span struct{ from, to time.Duration }

func newChaos(t *testing.T, workers int) *chaos {
	c := &chaos{t: t, server: servers.StartRedis(t), dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(c.dir, "number"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.store = openStore(t, c.server.URL())
	for range workers {
		c.working = append(c.working, c.hire())
	}
	return c
}

func (c *chaos) hire() *worker {
	w := hire(c.t, fmt.Sprintf("worker%d", len(c.workers)), c.server.URL(), c.dir)
	c.workers = append(c.workers, w)
	return w
}

// run disturbs the workers for so long, and lets them finish.
func (c *chaos) run(length, untilKill time.Duration) {
	end := time.After(length)
	random := rand.New(rand.NewPCG(sim.Seed(c.t), 0))
	second, kill := time.NewTicker(time.Second), time.NewTicker(untilKill)
	defer second.Stop()
	defer kill.Stop()
	for kills := 0; ; {
		select {
		case <-second.C:
			for range 2 {
				from := sinceBoot()
				c.server.KillClient()
				c.cuts = append(c.cuts, span{from, sinceBoot()})
			}
			c.server.FlushScripts()
		case <-kill.C:
			kills++
			i := random.IntN(len(c.working))
			if kills%2 == 0 {
				i = c.holder(i)
			}
			c.working[i].kill()
			c.working[i] = c.hire()
		case <-end:
			for _, w := range c.working {
				w.finish()
			}
			return
		}
	}
}

// holder returns who holds the lock, or some other if nobody does.
func (c *chaos) holder(other int) int {
	holders, err := c.store.Holders(context.Background(), countKey)
	if err != nil || len(holders) == 0 || holders[0].Waiting {
		return other
	}
	i := slices.IndexFunc(c.working, func(w *worker) bool { return w.name == holders[0].Owner })
	return max(i, 0)
}

// number is what the workers have counted to.
func (c *chaos) number() int {
	c.t.Helper()
	file, err := os.Open(filepath.Join(c.dir, "number"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	n, err := readNumber(file)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
