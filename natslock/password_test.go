package natslock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// TestNewPassword rotates a password as docs/stores/nats.md describes: the processes move to a second
// user, and the first user is removed.
func TestNewPassword(t *testing.T) {
	t.Parallel()
	const first, second = "{ user: first, password: a }", "{ user: second, password: b }"
	users := func(all string) string { return "authorization { timeout: 60, users: [" + all + "] }" }
	server := servers.StartNATS(t, users(first))
	before := "nats://first:a@" + server.Addr() + "?synced=true"
	opened(t, before) // makes the stream
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := locker(t, before)
	held := sessiontest.Locked(t, a, "held")
	server.Reload(users(first + ", " + second))
	b := locker(t, "nats://second:b@"+server.Addr()+"?synced=true")
	if err := unlocking.Release(held.Unlock); err != nil {
		t.Errorf("acquired before the second user was added: %v", err)
	}
	handsOver(t, ctx, a, b, func(*holdfast.Lock) {})
	held = sessiontest.Locked(t, b, "held")
	server.Reload(users(second))
	if err := unlocking.Release(held.Unlock); err != nil {
		t.Errorf("acquired before the first user was removed: %v", err)
	}
	servers.Until(t, "the reason in an error of the first user", func() bool {
		lock, err := a.TryLock(ctx, "k")
		if err == nil {
			t.Fatalf("the first user has acquired %v", lock)
		}
		return strings.Contains(strings.ToLower(err.Error()), "authorization violation")
	})
	a.Close()
	if err := refused(t, before); err == nil || !strings.Contains(err.Error(), "Authorization Violation") {
		t.Errorf("opened as the first user: %v, want a refusal", err)
	}
}
