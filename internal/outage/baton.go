package outage

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// A baton is a key that is handed over several times.
type baton struct {
	t      *testing.T
	key    string
	missed chan<- error // processes without a turn in time

	begun  *holdfast.Lock // held by the first process
	mu     sync.Mutex
	lock   *holdfast.Lock // of the current holder
	token  uint64         // the largest so far
	passed bool           // the second has had its turn
	loose  bool           // the second may have lost its place in the queue
}

// first acquires the key before anything fails.
func (b *baton) first(ctx context.Context, lk *holdfast.Locker) {
	if b.begun = b.ask(ctx, lk, b.key); b.begun != nil {
		b.take(b.begun)
	}
}

// second is in the queue when a part of the cluster fails.
func (b *baton) second(ctx context.Context, lk *holdfast.Locker) {
	l := b.ask(ctx, lk, b.key)
	if l == nil {
		return
	}
	b.take(l)
	b.mu.Lock()
	b.passed = true
	b.mu.Unlock()
	b.handOn(l)
}

// third comes later.
func (b *baton) third(ctx context.Context, lk *holdfast.Locker) {
	l := b.ask(ctx, lk, b.key)
	if l == nil {
		return
	}
	b.take(l)
	b.mu.Lock()
	if !b.passed && !b.loose {
		b.t.Errorf("%s: who came last passed who stood in line", b.key)
	}
	b.mu.Unlock()
	b.handOn(l)
}

// alone comes later, and acquires a key without other waiters.
func (b *baton) alone(ctx context.Context, lk *holdfast.Locker) {
	if l := b.ask(ctx, lk, b.key+"/alone"); l != nil {
		_ = l.Unlock() // see handOn
	}
}

// ask waits for a lock. ask returns nil if ctx ends before the lock is granted.
func (b *baton) ask(ctx context.Context, lk *holdfast.Locker, key string) *holdfast.Lock {
	for {
		l, err := lk.Lock(ctx, key)
		switch {
		case err == nil:
			return l
		case ctx.Err() != nil || errors.Is(err, driver.ErrInvalid):
			b.missed <- err
			return nil
		}
		b.mu.Lock()
		b.loose = true
		b.mu.Unlock()
		<-time.After(50 * time.Millisecond)
	}
}

// take notes the current holder of the key.
func (b *baton) take(l *holdfast.Lock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock != nil && b.lock.Err() == nil {
		b.t.Errorf("%s is held twice", b.key)
	}
	if l.Fence() <= b.token {
		b.t.Errorf("%s: token %d after %d", b.key, l.Fence(), b.token)
	}
	b.lock, b.token = l, l.Fence()
}

// handOn releases the key, which must not have been lost.
func (b *baton) handOn(l *holdfast.Lock) {
	b.mu.Lock()
	if b.lock == l {
		b.lock = nil
	}
	b.mu.Unlock()
	if err := l.Err(); err != nil {
		b.t.Errorf("%s was lost: %v", b.key, err)
	}
	_ = l.Unlock() // an unanswered release is retried in the background
}

// awaitSecond returns when the key has two claims.
func (b *baton) awaitSecond(ctx context.Context, lk *holdfast.Locker) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		line, err := lk.Holders(ctx, b.key)
		if err == nil && len(line) == 2 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.t.Errorf("%s: want two in line, there are %v, %v", b.key, line, err)
			return
		}
	}
}
