package redislock_test

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// odd are keys that mean something to Redis, to Lua or to our own names.
var odd = []string{
	"{", "}", "{}", "}{", "{a}", "{a}{b}", "a{b}c", "{000}", "*", "?", "[a-z]", "[", `\`, `\*`, "^", "a", "b", "aa",
	"new\nline", "\r\n", "\r\nFLUSHALL\r\n", "\x00", "\x00\x01\x7f", " ", "'", `"`, "']]", "%s", "ключ", "🔒",
	"a:held:b", ":held:", ":floor", "{000}:floor", "holdfast:{000}:held:a", "cadmium", "all",
	strings.Repeat("k", 512), strings.Repeat("{", 512), strings.Repeat("*", 512), strings.Repeat("\n", 512),
}

// TestOddKeys locks them all at once under an odd prefix, beside keys of others
// that look like ours.
func TestOddKeys(t *testing.T) {
	single := servers.StartRedis(t)
	t.Run("single", func(t *testing.T) { lockOdd(t, []*servers.Redis{single}) })
	cluster := servers.StartCluster(t).Calm()
	t.Run("cluster", func(t *testing.T) { lockOdd(t, cluster.Nodes[:3]) })
}

func lockOdd(t *testing.T, nodes []*servers.Redis) {
	const prefix = "p*[a-z]?\\\n:"
	at := "redis://" + nodes[0].Addr()
	ours := at + "?prefix=" + url.QueryEscape(prefix)
	decoy := openLocker(t, at+"?prefix=pxax%5C%0A:")
	var theirs []*holdfast.Lock
	for _, key := range []string{"a", "*", "decoy"} {
		theirs = append(theirs, mustLock(t, decoy, key))
	}
	for _, name := range []string{prefix, prefix + "{000}", "p{000}:held:a", "a", "*"} {
		for _, node := range nodes {
			_, _ = node.Do("SET", name, "theirs") // elsewhere in a cluster: MOVED
		}
	}
	before := foreign(t, nodes, prefix+"{")

	a, b := newLocker(t, openStore(t, ours), &holdfast.Options{TTL: patience}), openLocker(t, ours)
	held := make(map[string]*holdfast.Lock)
	for _, key := range odd {
		held[key] = mustLock(t, a, key)
	}
	lookAt(t, b)
	endAll(t, a, b, held)
	after := foreign(t, nodes, prefix+"{")
	delete(after, prefix+"floor") // ours, on a single server
	if !maps.Equal(before, after) {
		t.Errorf("what belongs to others was %q and is %q", before, after)
	}
	for _, lock := range theirs {
		mustUnlock(t, lock)
	}
}

// lookAt expects that all odd keys are held.
func lookAt(t *testing.T, b *holdfast.Locker) {
	t.Helper()
	for _, key := range odd {
		if _, err := servers.Patient(sessiontest.Bounded(t), b.TryLock, key); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("%q is held: %v", key, err)
		}
		if got := listed(t, b, key); !slices.Contains(got, key) || slices.ContainsFunc(got, func(k string) bool { return !strings.HasPrefix(k, key) }) {
			t.Errorf("the keys that begin with %q are %q", key, got)
		}
	}
	if got, want := listed(t, b, ""), slices.Sorted(slices.Values(odd)); !slices.Equal(got, want) {
		t.Errorf("the keys are %q, want %q", got, want)
	}
}

// endAll hands half of the odd keys over and breaks the other half.
func endAll(t *testing.T, a, b *holdfast.Locker, held map[string]*holdfast.Lock) {
	t.Helper()
	for i, key := range odd {
		ctx := sessiontest.Bounded(t)
		if i%2 == 0 {
			handOverTo(ctx, t, held[key], a, b, key)
			continue
		}
		holders, err := b.Holders(ctx, key)
		if err != nil || len(holders) != 1 {
			t.Errorf("%q: holders %+v, %v", key, holders, err)
			continue
		}
		if err := b.Break(ctx, key, holders[0].ID); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		<-held[key].Done()
	}
	until(t, "no key to be locked still", func() bool { return len(listed(t, b, "")) == 0 })
}

// handOverTo unlocks a lock for which b waits.
func handOverTo(ctx context.Context, t *testing.T, held *holdfast.Lock, a, b *holdfast.Locker, key string) {
	t.Helper()
	got := make(chan error)
	go func() {
		lock, err := servers.Patient(ctx, b.Lock, key)
		if err == nil {
			err = unlockAtOnce(lock)
		}
		got <- err
	}()
	awaitLine(t, a, key, 1)
	if err := errors.Join(unlock(held), <-got); err != nil {
		t.Errorf("%q: %v", key, err)
	}
}

// canaries is how the keys begin that Open may leave on a slow machine.
const canaries = "holdfast/canary/"

func listed(t *testing.T, locks *holdfast.Locker, prefix string) []string {
	t.Helper()
	return servers.Insist(t, func(ctx context.Context) (keys []string, err error) {
		for key, err := range locks.Keys(ctx, prefix) {
			if err != nil {
				return nil, err
			}
			if !strings.HasPrefix(key, canaries) {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		return keys, nil
	})
}

// foreign returns the Redis keys that do not begin with ours, and what is in
// those that nobody renews. Tombs, of calls that were not answered in time, go by themselves, and so do
// the claims of a proof.
func foreign(t *testing.T, nodes []*servers.Redis, ours string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, node := range nodes {
		names, _ := node.Must("KEYS", "*").([]any)
		for _, name := range names {
			name, _ := name.(string)
			if strings.HasPrefix(name, ours) || strings.Contains(name, ":tomb:") || strings.Contains(name, canaries) {
				continue
			}
			all[name] = ""
			if text, err := node.Do("GET", name); err == nil {
				all[name], _ = text.(string)
			}
		}
	}
	return all
}
