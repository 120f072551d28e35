package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A jam is a Store whose server hangs while its calls gather.
type jam struct {
	*testing.T
	*Store
	server *servers.Redis
	calls  sync.WaitGroup
}

func newJam(t *testing.T) *jam {
	j := &jam{T: t, server: servers.StartRedis(t)}
	servers.Until(t, "a proof, as the first call makes", func() bool { // A pause of this machine may cut off one.
		s := must.Get(NewConn(dial(t, j.server), nil))
		t.Cleanup(func() { s.Close() })
		if err := s.prove(t.Context()); err != nil {
			t.Fatal(err)
		}
		j.Store = s
		return s.proof.done.Load()
	})
	return j
}

func (j *jam) claim(key, id string) driver.Claim {
	return driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
}

// ask lets a call run which is granted or not.
func (j *jam) ask(ctx context.Context, c driver.Claim, ok bool) {
	j.calls.Go(func() {
		if g, err := j.Acquire(ctx, driver.Ask{Claim: c}); err != nil || g.OK != ok || ok && g.Fence == 0 {
			j.Errorf("%s was answered %+v, %v; want %v", c.ID, g, err, ok)
		}
	})
}

// end lets a release run of a claim that is there or not.
func (j *jam) end(c driver.Claim, there bool) {
	j.calls.Go(func() {
		if err := j.Release(j.Context(), []driver.Release{{Claim: c}})[0]; err != nil && !errors.Is(err, driver.ErrLost) || (err == nil) != there {
			j.Errorf("release of %s: %v; was it there: %v", c.ID, err, there)
		}
	})
}

// gather returns when n calls wait for the next batch.
func (j *jam) gather(c *combiner, n int) {
	j.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); ; {
		c.mu.Lock()
		waiting, underWay := len(c.waiting), c.batches
		c.mu.Unlock()
		if underWay == maxBatches && waiting == n {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			j.Fatalf("%d calls wait and %d batches are under way; want %d and %d", waiting, underWay, n, maxBatches)
		}
	}
}

// TestCallsThatGoTogether mixes the usual case with all others, and several
// terms.
func TestCallsThatGoTogether(t *testing.T) {
	j := newJam(t)
	held, again, buried := j.claim("held", "holder"), j.claim("again", "again"), j.claim("buried", "buried")
	for _, c := range []driver.Claim{held, again} {
		if g, err := j.Acquire(t.Context(), driver.Ask{Claim: c}); err != nil || !g.OK {
			t.Fatal(g, err)
		}
	}
	ended := time.Now()
	j.Release(t.Context(), []driver.Release{{Claim: buried, Late: true}})

	j.server.Pause()
	for i := range maxBatches {
		j.ask(t.Context(), j.claim(fmt.Sprint("lone", i), fmt.Sprint("lone", i)), true)
	}
	j.gather(j.acquires, 0)
	var free []driver.Claim
	for i := range maxBatch + 2 {
		c := j.claim(fmt.Sprint("key", i), fmt.Sprint("id", i))
		if i%3 == 0 {
			c.Weight, c.Note = 1, "a reader"
		}
		free = append(free, c)
		j.ask(t.Context(), c, true)
	}
	j.ask(t.Context(), j.claim("held", "other"), false)
	j.ask(t.Context(), again, true)
	j.calls.Go(func() {
		if g, err := j.Acquire(t.Context(), driver.Ask{Claim: buried}); err != nil || g.OK && time.Since(ended) < lateness {
			t.Errorf("the claim that has ended was answered %+v, %v", g, err)
		}
	})
	j.ask(t.Context(), free[0], true) // the same once more
	j.gather(j.acquires, len(free)+4)
	j.server.Resume()
	j.calls.Wait()
	fences := make(map[uint64]bool)
	for _, c := range free {
		hs, err := j.Holders(t.Context(), c.Key)
		if err != nil || len(hs) != 1 || hs[0].Weight != c.Weight || hs[0].Note != c.Note || fences[hs[0].Fence] {
			t.Errorf("%s is held by %+v, %v", c.Key, hs, err)
			continue
		}
		fences[hs[0].Fence] = true
	}

	j.server.Pause()
	j.end(held, true)
	j.end(again, true)
	j.gather(j.releases, 0)
	for _, c := range free {
		j.end(c, true)
	}
	j.end(j.claim("key0", "stranger"), false)
	j.gather(j.releases, len(free)+1)
	j.server.Resume()
	j.calls.Wait()
	for key := range j.Keys(t.Context(), "key") {
		t.Errorf("%s is held still", key)
	}
}

// TestGivenUpIsNotAsked cancels a call that waits for the next batch.
func TestGivenUpIsNotAsked(t *testing.T) {
	j := newJam(t)
	j.server.Pause()
	for i := range maxBatches {
		j.ask(t.Context(), j.claim(fmt.Sprint("lone", i), fmt.Sprint("lone", i)), true)
	}
	j.gather(j.acquires, 0)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() {
		_, err := j.Acquire(ctx, driver.Ask{Claim: j.claim("given up", "given up")})
		answered <- err
	}()
	j.gather(j.acquires, 1)
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was cancelled ended with %v", err)
	}
	j.ask(t.Context(), j.claim("patient", "patient"), true)
	j.gather(j.acquires, 2)
	j.server.Resume()
	j.calls.Wait()
	if hs, err := j.Holders(t.Context(), "given up"); err != nil || len(hs) > 0 {
		t.Errorf("what nobody waits for any more was granted: %+v, %v", hs, err)
	}
}

// TestTokensOfCallsThatGoTogether asks for tokens, the largest first: each claim gets
// the token that it asked for, as it would if the smallest came first. One asks for a token
// that is out of bounds.
func TestTokensOfCallsThatGoTogether(t *testing.T) {
	j := newJam(t)
	j.server.Pause()
	for i := range maxBatches {
		j.ask(t.Context(), j.claim(fmt.Sprint("lone", i), fmt.Sprint("lone", i)), true)
	}
	j.gather(j.acquires, 0)
	const claims = 10
	ahead := uint64(time.Now().Add(time.Hour).UnixMicro())
	for i := range claims {
		c, fence := j.claim(fmt.Sprint("key", i), fmt.Sprint("id", i)), ahead+uint64(claims-i)*driver.MaxSpan
		j.calls.Go(func() {
			g, err := j.Acquire(t.Context(), driver.Ask{Claim: c, Fence: fence, Span: driver.MaxSpan})
			if err != nil || !g.OK || g.Fence != fence || g.Span != driver.MaxSpan {
				t.Errorf("%s asked for token %d and was answered %+v, %v", c.ID, fence, g, err)
			}
		})
		j.gather(j.acquires, i+1)
	}
	j.server.Resume()
	j.calls.Wait()

	j.server.Pause()
	for i := range maxBatches {
		j.ask(t.Context(), j.claim(fmt.Sprint("more", i), fmt.Sprint("more", i)), true)
	}
	j.gather(j.acquires, 0)
	j.ask(t.Context(), j.claim("well", "well"), true)
	j.calls.Go(func() {
		g, err := j.Acquire(t.Context(), driver.Ask{Claim: j.claim("wild", "wild"), Fence: ahead + 2*driver.MaxLead})
		if !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("a token days ahead was answered %+v, %v; want ErrInvalid", g, err)
		}
	})
	j.gather(j.acquires, 2)
	j.server.Resume()
	j.calls.Wait()
}
