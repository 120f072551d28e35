package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An Acquire that comes while the answer to an earlier one is on its way is granted for its
// TTL from its own beginning. Found by the simulator, TestSessions: the keeper gave the lock
// back while its owner counted on it.
func TestSecondAskCountsFromItself(t *testing.T) {
	run(t, func(b *bench) {
		b.take(claim("b", "opens the session", 10*time.Second))
		c := claim("a", "slow", 3*time.Second)
		conn := b.seam.last()
		release := conn.hold()
		first, cancel := context.WithTimeout(b.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := b.acquire(first, c); !errors.Is(err, context.DeadlineExceeded) {
			b.Fatalf("the server does not answer: %v", err)
		}
		asked := time.Now()
		time.AfterFunc(400*time.Millisecond, release)
		b.take(c)
		conn.said()
		time.Sleep(time.Until(asked.Add(c.TTL)) - time.Millisecond)
		synctest.Wait()
		b.expect(conn.said("free"))
		if err := b.release(c); err != nil {
			b.Errorf("given back before its TTL has ended: %v", err)
		}
	})
}

// The session must last for as long, too: what the server is known to have heard is older
// than the second Acquire.
func TestSecondAskIsCoveredByTheSession(t *testing.T) {
	run(t, func(b *bench) {
		b.take(claim("b", "opens the session", time.Second))
		c := claim("a", "slow", 3*time.Second)
		conn := b.seam.last()
		release := conn.hold()
		first, cancel := context.WithTimeout(b.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := b.acquire(first, c); !errors.Is(err, context.DeadlineExceeded) {
			b.Fatalf("the server does not answer: %v", err)
		}
		time.AfterFunc(400*time.Millisecond, release)
		conn.said()
		b.take(c)
		b.expect(conn.said("ping"), "ping 3.3s")
	})
}
