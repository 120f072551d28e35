package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestAgeAcrossConnections looks again and again at a server that keeps running
// while connections break. It tells its uptime in whole seconds.
func TestAgeAcrossConnections(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	s := openStore(t, r.URL())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var before time.Duration
	for n := 0; before < 1200*time.Millisecond; n++ {
		if n%2 == 0 {
			r.KillClients()
		}
		_, err := s.Holders(ctx, "key")
		age, err2 := s.Age(ctx)
		if err != nil || err2 != nil {
			continue // on the connection that was cut
		}
		if age < before {
			t.Fatalf("the server is %v old, and was %v before", age, before)
		}
		before = age
	}
	r.RestartEmpty()
	until(t, "the server to be younger", func() bool {
		_, err := s.Holders(ctx, "key")
		age, err2 := s.Age(ctx)
		return err == nil && err2 == nil && age < before
	})
}
