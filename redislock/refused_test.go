package redislock_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
)

var internals = regexp.MustCompile(`[0-9a-f]{40}|user_script`)

// TestRefused lets a server refuse for reasons that somebody can see to. The error
// says to what, tells nothing of scripts, and wraps that of the server.
func TestRefused(t *testing.T) {
	for code, test := range map[string]struct {
		refuse func(t *testing.T, r *servers.Redis)
		wants  string
	}{
		"OOM": {func(_ *testing.T, r *servers.Redis) {
			r.Must("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction")
		}, "maxmemory"},
		"READONLY": {func(t *testing.T, r *servers.Redis) {
			r.Must("REPLICAOF", "127.0.0.1", "1")
		}, "primary"},
		"MASTERDOWN": {func(t *testing.T, r *servers.Redis) {
			r.Must("CONFIG", "SET", "replica-serve-stale-data", "no")
			r.Must("REPLICAOF", "127.0.0.1", "1")
		}, "primary"},
		"NOREPLICAS": {func(_ *testing.T, r *servers.Redis) {
			r.Must("CONFIG", "SET", "min-replicas-to-write", "1")
		}, "min-replicas-to-write"},
		"WRONGTYPE": {func(_ *testing.T, r *servers.Redis) {
			r.Must("SADD", "holdfast:floor", "x")
		}, `"holdfast:floor"`},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			r := servers.StartRedis(t)
			store := openStore(t, r.URL())
			// The server knows the script then.
			granted, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive("before", "before")})
			if err != nil || !granted.OK {
				t.Fatal(granted, err)
			}
			r.Must("DEL", "holdfast:floor")
			test.refuse(t, r)
			_, err = store.Acquire(t.Context(), driver.Ask{Claim: exclusive("key", "id")})
			if err == nil {
				t.Fatal("the lock is granted")
			}
			said := err.Error()
			if !strings.HasPrefix(said, code+" ") || !strings.Contains(said, test.wants) || internals.MatchString(said) {
				t.Errorf("%v; want it to begin with %s, to tell of %s, and nothing of scripts", err, code, test.wants)
			}
			if raw := (*rueidis.RedisError)(nil); !errors.As(err, &raw) {
				t.Errorf("%v hides the server's error", err)
			}
			if got := errors.Is(err, redislock.ErrOOM); got != (code == "OOM") {
				t.Errorf("%v matches ErrOOM: %v", err, got)
			}
		})
	}
}

// TestOOMReachesCallers sees the sentinel through the Locker.
func TestOOMReachesCallers(t *testing.T) {
	r := servers.StartRedis(t)
	locks := openLocker(t, r.URL())
	r.Must("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction")
	if _, err := servers.Patient(t.Context(), locks.TryLock, "key"); !errors.Is(err, redislock.ErrOOM) {
		t.Errorf("%v, want ErrOOM", err)
	}
}
