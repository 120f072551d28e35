package session

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
)

// A sleeper is a seam to a machine that can be suspended.
type sleeper struct {
	*seam
	slept atomic.Int64
}

func (s *sleeper) Clock() *boottime.Clock {
	return boottime.Simulated(func() time.Duration { return time.Duration(s.slept.Load()) })
}

// The server counts the silence of a session while the machine of the client is suspended.
// So a renewal just after a suspend needs a ping: the last answer is older than the
// monotonic clock says.
func TestRenewalAfterASuspendPings(t *testing.T) {
	run(t, func(b *bench) {
		machine := &sleeper{seam: b.seam}
		b.Watcher.Store = New(machine, Terms{MinTTL: time.Second, MaxTTL: time.Hour, Span: 1})
		defer b.Close()
		c := claim("a", "holder", 15*time.Second)
		b.take(c)
		b.seam.last().said()
		if err := b.renew(c); err != nil {
			t.Fatal(err)
		}
		b.expect(b.seam.last().said("ping"))
		machine.slept.Add(int64(10 * time.Second))
		if err := b.renew(c); err != nil {
			t.Fatal(err)
		}
		b.expect(b.seam.last().said("ping"), "ping 16s")
	})
}
