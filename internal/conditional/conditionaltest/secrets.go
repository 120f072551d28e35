package conditionaltest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// Secrets are a secret that a service accepts, and the secret that a client gets, which may be an
// older one.
type Secrets struct{ accepted, got atomic.Value }

// NewSecrets returns Secrets of which both are the same.
func NewSecrets() *Secrets {
	s := new(Secrets)
	s.accepted.Store("first")
	s.got.Store("first")
	return s
}

// Accepted returns the secret that the service accepts.
func (s *Secrets) Accepted() string { return s.accepted.Load().(string) }

// Got returns the secret that the client gets.
func (s *Secrets) Got() string { return s.got.Load().(string) }

// Replace replaces the secret of the service while a lock is held. The service then refuses the
// client with code, until the client gets the second secret, too.
func (s *Secrets) Replace(t *testing.T, locks *holdfast.Locker, code string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lock := must.Get(servers.Patient(ctx, locks.Lock, "key"))
	s.accepted.Store("second")
	if _, err := servers.Patient(ctx, locks.TryLock, "other"); err == nil || !strings.Contains(err.Error(), code) {
		t.Errorf("locked with the first secret: %v, want %s", err, code)
	}
	s.got.Store("second")
	if err := unlocking.Release(lock.Unlock); err != nil {
		t.Errorf("unlocked with the second secret: %v", err)
	}
	must.Get(servers.Patient(ctx, locks.Lock, "other"))
}
