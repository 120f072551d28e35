package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
)

// maxBatch is how many claims one call to the store carries.
const maxBatch = 500

// releaseTries is how often Unlock asks before the cleaner takes over.
const releaseTries = 3

// settle ends a claim at the store: with a release, or, if the key is to stay
// taken for longer, with a last renewal. An error means that the outcome is
// unknown; the cleaner goes on then. It matches ErrLost if the claim was gone.
func (lk *Locker) settle(l *Lock, now time.Time) error {
	call, claims, rest := lk.store.Release, l.lease.claims[:], time.Duration(0)
	if l.atLeast > 0 {
		rest = l.atLeast - (lk.clock.At(now) - l.since)
	}
	if rest > 0 {
		last := *l.lease.claim()
		last.Leave, last.TTL = true, rest
		call, claims = lk.store.Renew, []driver.Claim{last}
	}
	err := first(l.lease.end(now, call, claims))
	for try := 1; err != nil; try++ {
		if errors.Is(err, driver.ErrLost) {
			if try > 1 && rest <= 0 {
				return nil // the try whose answer was lost has done it
			}
			return lossOf(err)
		}
		if try == releaseTries || lk.sleep(context.Background(), jitter(firstTrouble<<try)) != nil {
			break
		}
		err = first(l.lease.end(time.Now(), call, claims))
	}
	if err != nil && rest <= 0 {
		claim := *l.lease.claim()
		claim.Late = true
		lk.cleaner.add(claim)
	}
	return err
}

// end makes one call that ends the claim.
func (l *lease) end(now time.Time, call func(context.Context, []driver.Claim) []error, claims []driver.Claim) []error {
	ctx := &l.last
	if l.ended {
		ctx = new(bounded.Context)
	}
	l.ended = true
	ctx.Start(context.Background(), now.Add(callLimit(l.claim().TTL)))
	defer ctx.End()
	return call(ctx, claims)
}

// callLimit is how long a store may take to answer.
func callLimit(ttl time.Duration) time.Duration { return min(ttl/6, time.Second) }

// first is the answer of a call with one claim.
func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// unlockAll unlocks locks when the Locker closes.
func (lk *Locker) unlockAll(locks []*Lock) error {
	var claims []driver.Claim
	failed, last := 0, error(nil)
	locks = slices.DeleteFunc(locks, func(l *Lock) bool { return !l.finish(&ending{ErrClosed}) })
	for _, l := range locks {
		l.lease.awaitRound()
		if l.atLeast == 0 {
			claims = append(claims, *l.lease.claim())
		} else if err := lk.settle(l, time.Now()); err != nil && !errors.Is(err, ErrLost) {
			failed, last = failed+1, err
		}
	}
	for batch := range slices.Chunk(claims, maxBatch) {
		for i, err := range lk.releaseAll(batch) {
			if err != nil && !errors.Is(err, driver.ErrLost) {
				failed, last = failed+1, err
				lk.cleaner.add(batch[i])
			}
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("holdfast: close: %d of %d locks not released, they end with their TTL: %w", failed, len(locks), last)
}

func (lk *Locker) releaseAll(claims []driver.Claim) []error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return answers(len(claims), lk.store.Release(ctx, claims))
}

// answers checks that a store gave one answer per claim, or none.
func answers(claims int, errs []error) []error {
	if errs == nil || len(errs) == claims {
		return errs
	}
	err := fmt.Errorf("store gave %d answers for %d claims", len(errs), claims)
	return slices.Repeat([]error{err}, claims)
}

// A cleaner releases, in the background, claims that nobody waits for any more
// and whose fate at the store is not known: those of callers who gave up, and
// releases that were not answered. It runs while there are any.
type cleaner struct {
	lk      *Locker
	todo    []stray // guarded by Locker.mu
	running bool
}

// A stray is a claim to release, until the store has forgotten it by itself.
type stray struct {
	claim driver.Claim
	until time.Duration
}

// closingGrace is how long the cleaner goes on after Close.
const closingGrace = 2 * time.Second

func (c *cleaner) add(claim driver.Claim) {
	c.lk.mu.Lock()
	defer c.lk.mu.Unlock()
	c.todo = append(c.todo, stray{claim, c.lk.now() + claim.TTL + time.Second})
	if !c.running {
		c.running = true
		c.lk.busy.Add(1)
		go c.run()
	}
}

func (c *cleaner) run() {
	defer c.lk.busy.Done()
	var pause time.Duration
	for {
		batch := c.take()
		if len(batch) == 0 {
			return
		}
		if c.release(batch) {
			pause = 0
			continue
		}
		pause = min(max(2*pause, firstTrouble), time.Second)
		if c.lk.sleep(context.Background(), jitter(pause)) != nil {
			time.Sleep(firstTrouble) // closing: a few quick tries are left
		}
	}
}

// take returns the next strays to release, none if the work is done.
func (c *cleaner) take() []stray {
	c.lk.mu.Lock()
	defer c.lk.mu.Unlock()
	n := min(len(c.todo), maxBatch)
	batch := slices.Clone(c.todo[:n])
	c.todo = slices.Delete(c.todo, 0, n)
	c.running = n > 0
	return batch
}

// release reports whether the store has answered for all.
func (c *cleaner) release(batch []stray) bool {
	claims := make([]driver.Claim, len(batch))
	for i := range batch {
		claims[i] = batch[i].claim
	}
	errs := c.lk.releaseAll(claims)
	c.lk.mu.Lock()
	defer c.lk.mu.Unlock()
	now, all := c.lk.now(), true
	for i, err := range errs {
		if err == nil || errors.Is(err, driver.ErrLost) {
			continue
		}
		all = false
		if c.lk.closed {
			batch[i].until = min(batch[i].until, now+closingGrace)
		}
		if now < batch[i].until {
			batch[i].claim.Late = true
			c.todo = append(c.todo, batch[i])
		}
	}
	return all
}
