package filelock

import (
	"testing"
	"time"
)

// The wall clock decides what tokens begin with, but not whether they grow, nor
// when leases end.
func TestClock(t *testing.T) {
	var ahead time.Duration
	a := in(t, t.TempDir(), &Options{Clock: func() time.Time { return time.Now().Add(ahead) }})
	b := in(t, a.dir, nil)
	held := exclusive("other")
	a.granted(held)
	var last uint64
	for _, ahead = range []time.Duration{0, time.Hour, -time.Hour, 0} {
		for _, u := range []*user{a, b} {
			c := exclusive("key")
			fence := u.granted(c).Fence
			u.release(c)
			if fence <= last {
				t.Errorf("%v ahead: token %d after %d", ahead, fence, last)
			}
			last = fence
		}
		b.refused(exclusive("other"))
		a.must(a.renew(held))
	}
	if lead := time.Until(time.UnixMicro(int64(last))); lead < 30*time.Minute {
		t.Errorf("tokens are %v ahead, want an hour", lead)
	}
}
