package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestAgeIsNeverTooMuch looks for the first time at various moments of a second
// at a server that was started late in one.
func TestAgeIsNeverTooMuch(t *testing.T) {
	t.Parallel()
	until(t, "the last quarter of a second", func() bool { return time.Now().Nanosecond() > 750e6 })
	began := time.Now()
	r := servers.StartRedis(t)
	for time.Since(began) < 1100*time.Millisecond {
		s := openStore(t, r.URL())
		age, err := s.Age(t.Context())
		if most := time.Since(began); err != nil || age > most {
			t.Fatalf("the server is said to be %v old, %v; it was started less than %v ago", age, err, most)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

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
	restarted := time.Now()
	r.RestartEmpty()
	until(t, "the server to be younger", func() bool {
		_, err := s.Holders(ctx, "key")
		age, err2 := s.Age(ctx)
		return err == nil && err2 == nil && age <= time.Since(restarted)
	})
}
