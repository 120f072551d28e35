package redislock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/servers"
	_ "github.com/holdfast-go/holdfast/redlock"
)

// TestRedlockRefusesLiars: a node that grants everything is refused, although a majority of the
// nodes excludes.
func TestRedlockRefusesLiars(t *testing.T) {
	t.Parallel()
	url := "redlock://?quarantine=0&node=" + startLiar(t, always)
	for range 2 {
		url += "&node=redis://" + servers.StartRedis(t).Addr()
	}
	refuses(t, url, "the server, liar 1.2.3, does not exclude: two connections asked for the same lock")
}
