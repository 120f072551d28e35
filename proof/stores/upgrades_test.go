package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = time.Minute

// TestUpgrades has two processes upgrade their read locks. The store must show who waits for
// whom.
func TestUpgrades(t *testing.T) {
	for name, check := range map[string]func(*scene){
		"file":       (*scene).queues,
		"SQLite":     (*scene).queues,
		"Redis":      (*scene).queues,
		"etcd":       (*scene).queues,
		"DynamoDB":   (*scene).queues,
		"S3":         (*scene).queues,
		"Azure":      (*scene).queues,
		"GCS":        (*scene).queues,
		"ZooKeeper":  (*scene).queues,
		"Postgres":   (*scene).queues,
		"MariaDB":    (*scene).queues,
		"SQL Server": (*scene).queues,
		"Memcached":  (*scene).tries,
		"Redlock":    (*scene).refuses,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scene{T: t, url: start(t, name), key: "k"}
			s.near, s.far = s.open(), s.open()
			check(s)
		})
	}
}

// A scene is two processes with read locks on one key.
type scene struct {
	*testing.T
	url, key  string
	near, far *holdfast.Locker
}

func (s *scene) open() *holdfast.Locker {
	s.Helper()
	locks := servers.Insist(s.T, func(ctx context.Context) (*holdfast.Locker, error) {
		return holdfast.Open(ctx, s.url, &holdfast.Options{TTL: time.Minute})
	})
	s.Cleanup(func() { locks.Close() })
	return locks
}

func (s *scene) read(locks *holdfast.Locker) *holdfast.Lock {
	s.Helper()
	l, err := servers.Patient(s.Context(), locks.Lock, s.key, holdfast.Shared(), holdfast.Wait(patience))
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// unlock leaves to the background what is not answered in time.
func (s *scene) unlock(l *holdfast.Lock) {
	s.Helper()
	if err := unlocking.Release(l.Unlock); err != nil {
		s.Error(err)
	}
}

// queues plays the queue of two upgrades. A first upgrade that has no answer for seconds, or does not
// ask for seconds, leaves the queue, and the second upgrade is then the first.
func (s *scene) queues() {
	for try := range 10 {
		s.key = fmt.Sprint("k", try)
		err := s.queue()
		if err == nil {
			return
		}
		unproved.Logf(s, "that the second upgrade is refused: the first: %v", err)
	}
	s.Error("the first upgrade has always left the queue")
}

// queue: the first upgrade waits in the queue, and the second is refused. queue returns the error of
// a first upgrade that has left the queue.
func (s *scene) queue() (late error) {
	l, other := s.read(s.near), s.read(s.far)
	if _, err := servers.Answer(s.Context(), other.TryUpgrade); !errors.Is(err, holdfast.ErrHeld) {
		s.Errorf("a try beside a reader: %v, want ErrHeld", err)
	}
	ctx, fail := context.WithCancelCause(s.Context())
	defer fail(nil)
	got := make(chan *holdfast.Lock, 1)
	go func() {
		up, err := l.Upgrade(s.Context())
		if err != nil {
			fail(err)
		}
		got <- up
	}()
	s.awaitQueue(ctx)
	queued := time.Now()
	_, err := servers.Answer(ctx, other.Upgrade)
	if ctx.Err() == nil && !errors.Is(err, holdfast.ErrDeadlock) {
		s.Errorf("the second upgrade: %v, want ErrDeadlock", err)
	}
	s.unlock(other)
	up := <-got
	if up != nil {
		s.upgraded(l, up)
		return nil
	}
	s.unlock(l)
	outrun := time.Since(queued) > time.Second && errors.Is(context.Cause(ctx), holdfast.ErrDeadlock) // in a pause of this machine
	if err := context.Cause(ctx); !errors.Is(err, os.ErrDeadlineExceeded) && !outrun {
		s.Fatalf("the first upgrade: %v", err)
	}
	return context.Cause(ctx)
}

// tries: without a queue, no upgrade waits.
func (s *scene) tries() {
	l, other := s.read(s.near), s.read(s.far)
	if _, err := servers.Answer(s.Context(), l.Upgrade); !errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrDeadlock) {
		s.Errorf("beside a reader: %v, want ErrHeld", err)
	}
	s.unlock(other)
	servers.Until(s.T, "the other reader to leave", func() bool {
		claims, err := s.far.Holders(s.Context(), s.key)
		return err == nil && len(claims) == 1
	})
	up, err := servers.Answer(s.Context(), l.Upgrade)
	if err != nil {
		s.Fatal(err)
	}
	s.upgraded(l, up)
}

// refuses: the store has no upgrades.
func (s *scene) refuses() {
	l := s.read(s.near)
	if _, err := servers.Answer(s.Context(), l.Upgrade); !errors.Is(err, holdfast.ErrInvalid) {
		s.Errorf("%v, want ErrInvalid", err)
	}
	s.unlock(l)
}

// awaitQueue waits until a claim waits, or ctx ends.
func (s *scene) awaitQueue(ctx context.Context) {
	s.Helper()
	servers.Await(s.T, "a claim to wait", func() error {
		claims, err := s.far.Holders(s.Context(), s.key)
		waits := slices.ContainsFunc(claims, func(h holdfast.Holder) bool { return h.Waiting })
		if err == nil && !waits && ctx.Err() == nil {
			err = fmt.Errorf("the claims are %v", claims)
		}
		return err
	})
}

// upgraded checks an upgrade, and the downgrade.
func (s *scene) upgraded(l, up *holdfast.Lock) {
	s.Helper()
	for _, opts := range [][]holdfast.LockOption{nil, {holdfast.Shared()}} {
		if _, err := servers.Patient(s.Context(), s.far.TryLock, s.key, opts...); !errors.Is(err, holdfast.ErrHeld) {
			s.Errorf("beside the upgrade: %v, want ErrHeld", err)
		}
	}
	token := up.Fence()
	s.unlock(up)
	next := s.read(s.far)
	if next.Fence() <= token || l.Fence() != token || l.Err() != nil {
		s.Errorf("after the downgrade of token %d: %d of the lock (%v), %d of the next reader", token, l.Fence(), l.Err(), next.Fence())
	}
	s.unlock(next)
	s.unlock(l)
}
