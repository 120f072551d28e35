package session

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
)

// A suspendable is a fakeServer of a machine that can be suspended.
type suspendable struct {
	*fakeServer
	slept atomic.Int64
}

func (s *suspendable) Clock() *boottime.Clock {
	return boottime.Simulated(func() time.Duration { return time.Duration(s.slept.Load()) })
}

// The server counts the silence of a session while the machine of the client is suspended.
// So a renewal just after a suspend needs a ping: the last answer is older than the
// monotonic clock says.
func TestRenewalAfterASuspendPings(t *testing.T) {
	run(t, func(b *fixture) {
		machine := &suspendable{fakeServer: b.server}
		b.Watcher.Store = New(machine, Terms{MinTTL: time.Second, MaxTTL: time.Hour, Span: 1})
		defer b.Close()
		c := claim("a", "holder", 15*time.Second)
		b.take(c)
		b.server.last().requests()
		if err := b.renew(c); err != nil {
			t.Fatal(err)
		}
		b.expect(b.server.last().requests("ping"))
		machine.slept.Add(int64(10 * time.Second))
		if err := b.renew(c); err != nil {
			t.Fatal(err)
		}
		b.expect(b.server.last().requests("ping"), "ping 16s")
	})
}
