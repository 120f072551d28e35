package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An Acquire sent while the answer to an earlier Acquire is on its way is granted for its
// TTL from its own beginning. Otherwise the store releases the lock while its owner counts
// on the lock. The simulator found this, TestSessions.
func TestSecondAskCountsFromItself(t *testing.T) {
	run(t, func(b *fixture) {
		b.take(claim("b", "opens the session", 10*time.Second))
		c := claim("a", "slow", 3*time.Second)
		conn := b.server.last()
		release := conn.hold()
		first, cancel := context.WithTimeout(b.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := b.acquire(first, c); !errors.Is(err, context.DeadlineExceeded) {
			b.Fatalf("the server does not answer: %v", err)
		}
		asked := time.Now()
		time.AfterFunc(400*time.Millisecond, release)
		b.take(c)
		conn.requests()
		time.Sleep(time.Until(asked.Add(c.TTL)) - time.Millisecond)
		synctest.Wait()
		b.expect(conn.requests("free"))
		if err := b.release(c); err != nil {
			b.Errorf("released before its TTL has ended: %v", err)
		}
	})
}

// The session must last for as long, too: the last answered request is older than the second
// Acquire.
func TestSecondAskIsCoveredByTheSession(t *testing.T) {
	run(t, func(b *fixture) {
		b.take(claim("b", "opens the session", time.Second))
		c := claim("a", "slow", 3*time.Second)
		conn := b.server.last()
		release := conn.hold()
		first, cancel := context.WithTimeout(b.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := b.acquire(first, c); !errors.Is(err, context.DeadlineExceeded) {
			b.Fatalf("the server does not answer: %v", err)
		}
		time.AfterFunc(400*time.Millisecond, release)
		conn.requests()
		b.take(c)
		b.expect(conn.requests("ping"), "ping 3.3s")
	})
}
