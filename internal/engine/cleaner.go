package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A cleaner releases, in the background, claims that no caller waits for and whose fate at
// the store is unknown: the claims of callers that gave up, and the claims whose release was
// not answered. The cleaner runs while there are such claims.
type cleaner struct{ *core }

// closingGrace is how long the cleaner goes on in Close.
const closingGrace = 2 * time.Second

// add hands a claim to the cleaner.
func (k cleaner) add(t *table, r driver.Release) {
	t.leftovers = append(t.leftovers, leftover{r, k.now() + r.TTL + time.Second})
	if !t.cleaning {
		t.cleaning = true
		k.busy.Go(k.run)
	}
}

func (k cleaner) run() {
	var pause time.Duration
	for {
		batch := k.take()
		if len(batch) == 0 {
			return
		}
		if k.release(batch) {
			pause = 0
			continue
		}
		pause = min(max(2*pause, firstRetry), time.Second)
		if k.sleep(context.Background(), jitter(pause)) != nil {
			time.Sleep(firstRetry) // closing: a few quick tries are left
		}
	}
}

// take returns the next claims to release; an empty batch means that the work is done. The
// claims stay in the table until the store has answered.
func (k cleaner) take() []leftover {
	t := k.lock()
	defer k.unlock()
	if t.until > 0 && k.now() >= t.until {
		t.leftovers = nil
	}
	n := min(len(t.leftovers), MaxBatch)
	t.cleaning = n > 0
	return slices.Clone(t.leftovers[:n])
}

// release reports whether the store has answered for every claim.
func (k cleaner) release(batch []leftover) bool {
	releases := make([]driver.Release, len(batch))
	for i := range batch {
		releases[i] = batch[i].Release
	}
	errs := shortly(releases, k.Store.Release)
	t := k.lock()
	defer k.unlock()
	t.leftovers = slices.Delete(t.leftovers, 0, len(batch))
	now, all := k.now(), true
	for i, err := range errs {
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrInvalid) {
			continue // The claim ended, or was never kept.
		}
		all = false
		if now < batch[i].until {
			batch[i].Late = true
			t.leftovers = append(t.leftovers, batch[i])
		}
	}
	return all
}

// leaving returns the public ids of the claims on a key that the cleaner is to release.
func (k cleaner) leaving(key string) (ids []string) {
	t := k.lock()
	defer k.unlock()
	for _, l := range t.leftovers {
		if l.Key == key {
			ids = append(ids, driver.PublicID(l.ID))
		}
	}
	return ids
}

// shortly makes one call for a batch of claims.
func shortly[T any](batch []T, call func(context.Context, []T) []error) []error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return answers(len(batch), call(ctx, batch))
}

// answers returns one answer per claim. A store gives as many, or nil for success.
func answers(claims int, errs []error) []error {
	if len(errs) == claims {
		return errs
	}
	var err error
	if errs != nil {
		err = fmt.Errorf("store gave %d answers for %d claims", len(errs), claims)
	}
	return slices.Repeat([]error{err}, claims)
}
