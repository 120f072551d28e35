package memcachelock

import (
	"crypto/rand"
	"fmt"
	"math"
	"time"
)

// A run of a server has a clock item that stays as long as the run lasts, and is added
// again if evicted or flushed. The item shows the time: the server says how long an item
// has left, and the clock item ends at a known time, horizon, the last second that
// servers can count to. The value of the item names the run. Every run counts CAS numbers
// from 1; the name of the run keeps the CAS numbers of different runs apart.
const horizon = math.MaxInt32

// startClock appends the command that makes the clock if there is none.
func startClock(out []byte, item string) []byte {
	return fmt.Appendf(out, "add %s 0 %d 26\r\n%s\r\n", item, horizon, rand.Text())
}

// wrongClock says that a clock item does not show the time. The only remedy is to delete the
// item, as a second clock cannot be added beside it.
func (c *conn) wrongClock(clock string) error {
	return fmt.Errorf("%s: its item %s is not as it was made: delete it", c.RemoteAddr(), clock)
}

// open records the time by the server's clock.
func (c *conn) open(wall int64) {
	c.opened, c.wall, c.late = time.Now(), wall, time.Since(c.asked)
}

// plausible reports whether a time may come from the server's clock. If not, a foreign
// client touched the item, or this machine has slept.
func (c *conn) plausible(clock int64) bool {
	ahead := time.Duration(clock-c.wall)*tick - time.Since(c.opened)
	return ahead >= -grain-time.Since(c.asked) && ahead <= grain+c.late
}

// token is the fencing token of a write with this CAS number. A run counts its writes. The
// next run begins at a later second; every second is worth a million tokens.
func (c *conn) token(cas uint64) uint64 { return c.epoch*1e6 + cas }

// now is the time by the server's clock, in microseconds since 1970, to about a second: for
// people.
func (c *conn) now() int64 {
	return (time.Duration(c.wall)*time.Second + time.Since(c.opened)).Microseconds()
}
