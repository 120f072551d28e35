package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// maxBatch is how many claims one call to the store carries.
const maxBatch = 500

// releaseTries is how often Unlock tries before the cleaner takes over.
const releaseTries = 3

// settle ends a claim at the store: with a release, or, if the key must stay locked for
// longer, with a last renewal. An error means that the outcome is unknown; the cleaner
// then goes on. The error matches ErrLost if the claim was gone.
func (lk *Locker) settle(l *Lock, now time.Time) error {
	call, claims := lk.store.Release, l.lease.claims[:]
	last, leave := l.parting(now)
	switch {
	case leave:
		call, claims = lk.store.Renew, []driver.Claim{last}
	case last.Late:
		claims = []driver.Claim{last}
	}
	err := first(l.lease.end(now, call, claims))
	if err == nil {
		return nil
	}
	for try := 1; err != nil; try++ {
		if errors.Is(err, driver.ErrLost) {
			if try > 1 && !leave {
				return nil // an earlier try, whose answer was lost, has released it
			}
			return lossOf(err)
		}
		if try == releaseTries || lk.sleep(context.Background(), jitter(firstTrouble<<try)) != nil {
			break
		}
		err = first(l.lease.end(time.Now(), call, claims))
	}
	if err != nil && !leave {
		claim := *l.lease.claim()
		claim.Late = true
		lk.cleaner.add(claim)
	}
	return silence.Of(err, time.Since(now))
}

// parting returns the claim of the last renewal; leave is false if the key need not stay
// locked any longer.
func (l *Lock) parting(now time.Time) (last driver.Claim, leave bool) {
	last = l.lease.released()
	rest := l.atLeast - (l.lease.lk.clock.At(now) - l.since)
	if l.atLeast == 0 || rest <= 0 {
		return last, false
	}
	last.Leave, last.TTL, last.Late = true, rest, false
	return last, true
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
	began := time.Now()
	var leaving, going []driver.Claim
	locks = slices.DeleteFunc(locks, func(l *Lock) bool { return !l.finish(&ending{ErrClosed}) })
	for _, l := range locks {
		l.lease.awaitRound()
		if last, leave := l.parting(time.Now()); leave {
			leaving = append(leaving, last)
		} else {
			going = append(going, last)
		}
	}
	left, errLeft := lk.endAll(leaving, lk.store.Renew)
	held, err := lk.endAll(going, lk.store.Release)
	for _, claim := range held {
		lk.cleaner.add(claim)
	}
	lk.cleaner.finish()
	failed, err := append(left, held...), silence.Of(cmp.Or(err, errLeft), time.Since(began))
	lk.unlocked(locks, failed, err)
	if len(failed) > 0 {
		return fmt.Errorf("holdfast: close: %d of %d locks not released, they end with their TTL: %w",
			len(failed), len(locks), err)
	}
	return nil
}

// endAll ends claims, one call per batch, and returns the claims of unknown fate. It stops
// after a batch without an answer, so that a store that hangs does so only once.
func (lk *Locker) endAll(claims []driver.Claim, call func(context.Context, []driver.Claim) []error) (failed []driver.Claim, last error) {
	for len(claims) > 0 {
		batch := claims[:min(len(claims), maxBatch)]
		claims = claims[len(batch):]
		unknown := 0
		for i, err := range shortly(batch, call) {
			if err != nil && !errors.Is(err, driver.ErrLost) {
				failed, last = append(failed, batch[i]), err
				unknown++
			}
		}
		if unknown == len(batch) {
			return append(failed, claims...), last
		}
	}
	return failed, last
}

// shortly makes one call for a batch of claims.
func shortly(claims []driver.Claim, call func(context.Context, []driver.Claim) []error) []error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return answers(len(claims), call(ctx, claims))
}

// answers checks that a store gave one answer per claim, or none.
func answers(claims int, errs []error) []error {
	if errs == nil || len(errs) == claims {
		return errs
	}
	err := fmt.Errorf("store gave %d answers for %d claims", len(errs), claims)
	return slices.Repeat([]error{err}, claims)
}

// A cleaner releases, in the background, claims that nobody waits for any more and whose
// fate at the store is unknown: the claims of callers that gave up, and the claims whose
// release was not answered. The cleaner runs while there are such claims.
type cleaner struct {
	lk      *Locker
	todo    []stray // guarded by Locker.mu
	running bool
	until   time.Duration // when to stop, 0 before Close
}

// A stray is a claim to release, at the latest until it has expired at the store anyway.
type stray struct {
	claim driver.Claim
	until time.Duration
}

// closingGrace is how long the cleaner goes on in Close.
const closingGrace = 2 * time.Second

func (c *cleaner) add(claim driver.Claim) {
	c.lk.mu.Lock()
	defer c.lk.mu.Unlock()
	c.enqueue(claim)
}

// enqueue is add with Locker.mu held.
func (c *cleaner) enqueue(claim driver.Claim) {
	c.todo = append(c.todo, stray{claim, c.lk.now() + claim.TTL + time.Second})
	if !c.running {
		c.running = true
		c.lk.busy.Add(1)
		go c.run()
	}
}

// finish gives the cleaner closingGrace to come to its end.
func (c *cleaner) finish() {
	c.lk.mu.Lock()
	defer c.lk.mu.Unlock()
	c.until = c.lk.now() + closingGrace
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

// take returns the next strays to release; an empty batch means that the work is done.
func (c *cleaner) take() []stray {
	c.lk.mu.Lock()
	defer c.lk.mu.Unlock()
	if c.until > 0 && c.lk.now() >= c.until {
		c.todo = nil
	}
	n := min(len(c.todo), maxBatch)
	batch := slices.Clone(c.todo[:n])
	c.todo = slices.Delete(c.todo, 0, n)
	c.running = n > 0
	return batch
}

// release reports whether the store has answered for every claim.
func (c *cleaner) release(batch []stray) bool {
	claims := make([]driver.Claim, len(batch))
	for i := range batch {
		claims[i] = batch[i].claim
	}
	errs := shortly(claims, c.lk.store.Release)
	c.lk.mu.Lock()
	defer c.lk.mu.Unlock()
	now, all := c.lk.now(), true
	for i, err := range errs {
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrInvalid) {
			continue // The claim ended, or was never kept.
		}
		all = false
		if now < batch[i].until {
			batch[i].claim.Late = true
			c.todo = append(c.todo, batch[i])
		}
	}
	return all
}
