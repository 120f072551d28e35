package sim

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
)

// A suspended machine has a monotonic time and timers that stand still, but the clock of the
// engine goes on. Its connections have ended when it wakes.
func TestSuspend(t *testing.T) {
	Run(t, 1, Memory(), func(w *World) {
		p := w.Process("a", nil)
		p.Link("store").Faults = Faults{Start: time.Second}
		clock := boottime.Of(p.machine)
		once, again := clock.NewTimer(10*time.Second), clock.NewTimer(0)
		defer once.Stop()
		defer again.Stop()
		<-again.C
		again.Reset(10 * time.Second)
		time.Sleep(4 * time.Second)
		p.Suspend()
		time.Sleep(time.Hour)
		p.Thaw()
		if now := clock.Now(); now != time.Hour+4*time.Second {
			t.Errorf("after an hour asleep and 4s awake the clock says %v", now)
		}
		if ran := p.machine.Ran(time.Now()); ran != 4*time.Second {
			t.Errorf("after an hour asleep and 4s awake the monotonic time is %v", ran)
		}
		<-once.C
		<-again.C
		if late := w.Now() - time.Hour - 10*time.Second; late != 0 {
			t.Errorf("a timer of 10s fires %v late", late)
		}
		before := w.Count.SlowStarts
		if _, err := Send(w.Context(), p.Link("store"), "call", "", "", func() int { return 0 }); err != nil || w.Count.SlowStarts == before {
			t.Errorf("the machine wakes with a connection: %v", err)
		}
	})
}
