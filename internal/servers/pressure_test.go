package servers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The items that end soonest are evicted first, and items without an end stay.
func TestPressRedis(t *testing.T) {
	t.Parallel()
	r := StartRedis(t, "maxmemory-samples 64") // all keys
	r.Must("SET", "stays", "for good")
	for n := range 20 {
		r.Must("SET", fmt.Sprint("soon", n), strings.Repeat("x", 200), "EX", "1000")
		r.Must("SET", fmt.Sprint("late", n), strings.Repeat("x", 200), "EX", "2000")
	}
	var gone []string
	r.Press(t.Context(), func(key string) bool {
		gone = append(gone, key)
		return len(gone) == 3
	})
	if len(gone) != 3 || slices.ContainsFunc(gone, func(key string) bool { return !strings.HasPrefix(key, "soon") }) {
		t.Errorf("evicted were %q, want three that end soon", gone)
	}
	if got := r.Must("GET", "stays"); got != "for good" {
		t.Errorf("what never ends is %v", got)
	}
	if got := r.Must("EXISTS", gone[0]); got != int64(0) {
		t.Errorf("%s was evicted, and is there", gone[0])
	}
	if got := r.Must("KEYS", "filler*"); len(got.([]any)) > 0 {
		t.Errorf("%q is left", got)
	}
	r.Must("SET", "more", strings.Repeat("x", 1<<20)) // since there is room again
}

func TestPressMemcached(t *testing.T) {
	t.Parallel()
	m := StartMemcached(t, "-m", "1", "-I", "512k")
	m.Must("set some%20key 0 0 200\r\n"+strings.Repeat("x", 200), "STORED")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found := false
	m.Press(ctx, func(key string) bool {
		found = found || key == "some%20key"
		return found
	})
	if !found {
		t.Error("the item was never evicted")
	}
	m.Must("get some%20key", "END")
}

// Pressure ends with its context, though nothing can be evicted.
func TestPressEnds(t *testing.T) {
	t.Parallel()
	r := StartRedis(t)
	r.Must("SET", "stays", "for good")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Press(ctx, func(key string) bool {
		t.Errorf("%s was evicted", key)
		return false
	})
}
