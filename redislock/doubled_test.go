package redislock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestRequestsSentTwice: behind a proxy that sends every request twice, as one that retries
// writes may, claims exclude each other and tokens grow. Rules about the reply to a release
// do not hold: the copy may come first, and then the claim is gone.
func TestRequestsSentTwice(t *testing.T) {
	t.Parallel()
	h := opening("redis://" + servers.StartDoubler(t, servers.StartRedis(t).Addr()))
	for _, failure := range drivertest.Check(t, h, "together/all-methods", "history/calm", "history/crashes") {
		t.Error(failure)
	}
}
