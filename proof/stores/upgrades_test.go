package stores

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
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
			s := &scene{T: t, url: start(t, name)}
			s.near, s.far = s.open(), s.open()
			check(s)
		})
	}
}

// A scene is two processes with read locks on one key.
type scene struct {
	*testing.T
	url       string
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
	l, err := servers.Patient(s.Context(), locks.Lock, "k", holdfast.Shared(), holdfast.Wait(patience))
	if err != nil {
		s.Fatal(err)
	}
	return l
}

func (s *scene) unlock(l *holdfast.Lock) {
	s.Helper()
	if err := l.Unlock(); err != nil {
		s.Error(err)
	}
}

// queues: the first upgrade waits in the queue, and the second is refused.
func (s *scene) queues() {
	l, other := s.read(s.near), s.read(s.far)
	try := func(ctx context.Context, _ string, _ ...any) (*holdfast.Lock, error) { return other.TryUpgrade(ctx) }
	if _, err := servers.Patient(s.Context(), try, "k"); !errors.Is(err, holdfast.ErrHeld) {
		s.Errorf("a try beside a reader: %v, want ErrHeld", err)
	}
	got := make(chan *holdfast.Lock, 1)
	go func() {
		defer close(got)
		if up, err := l.Upgrade(s.Context()); err != nil {
			s.Error(err)
		} else {
			got <- up
		}
	}()
	s.awaitQueue()
	upgrade := func(ctx context.Context, _ string, _ ...any) (*holdfast.Lock, error) { return other.Upgrade(ctx) }
	if _, err := servers.Patient(s.Context(), upgrade, "k"); !errors.Is(err, holdfast.ErrDeadlock) {
		s.Errorf("the second upgrade: %v, want ErrDeadlock", err)
	}
	s.unlock(other)
	s.upgraded(l, <-got)
}

// tries: without a queue, no upgrade waits.
func (s *scene) tries() {
	l, other := s.read(s.near), s.read(s.far)
	if _, err := l.Upgrade(s.Context()); !errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrDeadlock) {
		s.Errorf("beside a reader: %v, want ErrHeld", err)
	}
	s.unlock(other)
	up, err := l.Upgrade(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	s.upgraded(l, up)
}

// refuses: the store has no upgrades.
func (s *scene) refuses() {
	l := s.read(s.near)
	if _, err := l.Upgrade(s.Context()); !errors.Is(err, holdfast.ErrInvalid) {
		s.Errorf("%v, want ErrInvalid", err)
	}
	s.unlock(l)
}

// awaitQueue waits until a claim waits.
func (s *scene) awaitQueue() {
	s.Helper()
	servers.Until(s.T, "a claim to wait", func() bool {
		claims, err := s.far.Holders(s.Context(), "k")
		if err != nil {
			s.Fatal(err)
		}
		return slices.ContainsFunc(claims, func(h holdfast.Holder) bool { return h.Waiting })
	})
}

// upgraded checks an upgrade, and the downgrade.
func (s *scene) upgraded(l, up *holdfast.Lock) {
	s.Helper()
	if up == nil {
		return
	}
	for _, opts := range [][]holdfast.LockOption{nil, {holdfast.Shared()}} {
		if _, err := servers.Patient(s.Context(), s.far.TryLock, "k", opts...); !errors.Is(err, holdfast.ErrHeld) {
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
