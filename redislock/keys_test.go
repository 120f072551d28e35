package redislock

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	n, cluster := names{"app:", false}, names{"app:", true}
	for _, key := range []string{"", "job", "a{b}c", "{}", "}{", strings.Repeat("x", 512), "new\nline", "\x00"} {
		tag := bucket(key)
		want := []string{
			"app:" + tag + ":held:" + key, "app:" + tag + ":line:" + key, "app:" + tag + ":places:" + key,
			"app:" + tag + ":tomb:id", "app:floor",
		}
		if got := n.all(key, "id"); !slices.Equal(got, want) {
			t.Errorf("%q has the names %q, want %q", key, got, want)
		}
		if got, want := cluster.all(key, "id")[4], "app:"+tag+":floor"; got != want {
			t.Errorf("in a cluster %q has the floor %q, want %q", key, got, want)
		}
		if n.held(key) != want[0] || n.tomb(key, "id") != want[3] || n.floor(key) != want[4] {
			t.Errorf("%q has other names one by one than %q", key, want)
		}
		for _, name := range []string{want[0], want[2]} {
			if got, ok := n.key(name); !ok || got != key {
				t.Errorf("%q is about %q, want %q", name, got, key)
			}
		}
	}
	for _, name := range []string{"", "app:", "app:{000}", "other:{000}:held:x", "app:{000}:held"} {
		if key, ok := n.key(name); ok {
			t.Errorf("%q is taken to be about %q", name, key)
		}
	}
}

func TestBucketsAreSpread(t *testing.T) {
	used := make(map[string]int)
	const n = 100 * buckets
	for i := range n {
		used[bucket("order/"+itoa(int64(i)))]++
	}
	if len(used) != buckets {
		t.Fatalf("%d keys are in %d buckets, want all %d", n, len(used), buckets)
	}
	for tag, keys := range used {
		if len(tag) != 5 || keys > 300 {
			t.Errorf("bucket %s has %d of %d keys", tag, keys, n)
		}
	}
}
