package session

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A refusal during a back-off comes from this process. It names the back-off, and is no
// sign that the server keeps the session.
func TestBackOffIsNoAnswer(t *testing.T) {
	run(t, func(b *fixture) {
		held := claim("a", "held", 10*time.Second)
		b.take(held)
		b.server.resting = map[string]bool{b.server.Name("b"): true}
		c := b.server.last()
		time.Sleep(2 * time.Second)
		c.requests()
		g, err := b.acquire(b.Context(), claim("b", "rests", 10*time.Second))
		if err != nil || g.OK || !errors.Is(g.Blocked, backoff.ErrResting) {
			b.Errorf("during a back-off: %+v, %v; want a refusal that names the back-off", g, err)
		}
		if err := b.renew(held); err != nil {
			b.Error(err)
		}
		b.expect(c.requests("ping", "try"), "ping 11s")
	})
}
