package memcachelock

import (
	"crypto/rand"
	"fmt"
	"math"
	"time"
)

// A run of a server has an item that stays as long as the run lasts, unless it
// is evicted or flushed, and then comes again. It tells the time: the server
// says how long an item has left, and this one ends at a time that all know, the
// last one that servers can count to. Its value names the run, so that we never
// take a CAS number of one run, which each counts from 1, for that of another.
const horizon = math.MaxInt32

// startClock appends the command that makes the clock if there is none.
func startClock(out []byte, item string) []byte {
	return fmt.Appendf(out, "add %s 0 %d 26\r\n%s\r\n", item, horizon, rand.Text())
}

// spoiled says that a clock does not tell the time. Nothing but to delete it
// helps, as another cannot be added beside it.
func (c *conn) spoiled(clock string) error {
	return fmt.Errorf("%s: its item %s is not as it was made: delete it", c.RemoteAddr(), clock)
}

// open takes note of the time by the server's clock.
func (c *conn) open(wall int64) {
	c.opened, c.wall, c.late = time.Now(), wall, time.Since(c.asked)
}

// believes reports whether a time may be that of the server's clock. An item that
// tells another was touched by somebody else, or this machine has slept.
func (c *conn) believes(clock int64) bool {
	ahead := time.Duration(clock-c.wall)*tick - time.Since(c.opened)
	return ahead >= -grain-time.Since(c.asked) && ahead <= grain+c.late
}

// token is the fencing token of a write with this CAS number. A run counts its
// writes, and the next one begins at a later second, a million tokens further
// for each.
func (c *conn) token(cas uint64) uint64 { return c.epoch*1e6 + cas }

// now is the time by the server's clock, in microseconds since 1970, to about a
// second: for people.
func (c *conn) now() int64 {
	return (time.Duration(c.wall)*time.Second + time.Since(c.opened)).Microseconds()
}
