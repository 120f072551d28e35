package redislock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
	_ "github.com/holdfast-go/holdfast/redlock"
)

// TestRedlockRefusesLiars: a node that grants everything is refused, although a majority of the
// nodes excludes. Open waits for the third node for 100 ms after the majority has answered, so the
// majority is slow here.
func TestRedlockRefusesLiars(t *testing.T) {
	t.Parallel()
	url := "redlock://?quarantine=0&node=" + startLiar(t, always)
	for range 2 {
		node := servers.StartProxy(t, servers.StartRedis(t).Addr())
		node.Replies.Delay(100 * time.Millisecond)
		url += "&node=redis://" + node.Addr()
	}
	refuses(t, url, "the server, liar 1.2.3, does not exclude: two connections asked for the same lock")
}
