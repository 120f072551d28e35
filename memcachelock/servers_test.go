package memcachelock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestTwoServers has clients that list the servers in different orders. When one
// server dies its keys cannot be locked, and are never looked for on the other.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	one, two := servers.StartMemcached(t), servers.StartMemcached(t)
	a, b := newStore(t, nil, one, two), newStore(t, nil, two, one)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var keys []string
	for i := range 40 {
		keys = append(keys, fmt.Sprint("key ", i))
		c := exclusive(keys[i], fmt.Sprint("a", i))
		c.TTL = time.Hour
		granted(t, a, c)
	}
	// By the ports, which are random, a server has less than four keys once in 10^8 runs.
	if n, m := items(one), items(two); n < 5 || m < 5 || n+m != len(keys)+2 {
		t.Errorf("%d and %d items for %d keys and two clocks", n, m, len(keys))
	}
	refused := func(key string) (bool, error) {
		g, err := b.Acquire(ctx, exclusive(key, "b"))
		if g.OK {
			t.Fatalf("%s was given away twice", key)
		}
		return err == nil, err
	}
	for _, key := range keys {
		if _, err := refused(key); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	for key, err := range b.Keys(ctx, "key") {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, key)
	}
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(keys)); !slices.Equal(found, want) {
		t.Errorf("found the keys %q, want %q", found, want)
	}

	two.Kill()
	answers := 0
	for _, key := range keys {
		ok, err := refused(key)
		if ok {
			answers++
		}
		if ok != (choose(b.servers, key).addr == one.Addr()) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if answers == 0 || answers == len(keys) {
		t.Errorf("%d of %d keys have a server", answers, len(keys))
	}
	if warnings, err := b.Check(ctx); err != nil || len(warnings) != 2 {
		t.Errorf("warns of %q, %v; want one that evicts and one that is down", warnings, err)
	}
	if err := b.reach(ctx); err != nil {
		t.Errorf("with one server of two: %v", err)
	}
}

// TestChoice has a server more and a server less: few keys move.
func TestChoice(t *testing.T) {
	all := must.Get(New([]string{"b.example.com", "A.example.com:11211", "c.example.com:11212"}, nil)).servers
	two := []*server{all[1], all[0]}
	const keys = 3000
	counts, moved := make(map[string]int), 0
	for i := range keys {
		key := fmt.Sprint("key/", i)
		now := choose(all, key)
		counts[now.addr]++
		if now != all[2] && choose(two, key) != now {
			moved++
		}
	}
	if moved > 0 {
		t.Errorf("%d keys move from servers that stay", moved)
	}
	for _, addr := range []string{"a.example.com:11211", "b.example.com:11211", "c.example.com:11212"} {
		if n := counts[addr]; n < keys/4 || n > keys/2 {
			t.Errorf("%s has %d of %d keys", addr, n, keys)
		}
	}
}

// TestUnheard cuts off the answers to calls that the server has done.
func TestUnheard(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	proxy := servers.StartProxy(t, m.Addr())
	s, other := must.Get(New([]string{proxy.Addr()}, nil)), newStore(t, nil, m)
	defer s.Close()
	proved(t, s)
	unheard := func(what string, call func(ctx context.Context) error) {
		t.Helper()
		dropped := proxy.Replies.Dropped()
		proxy.Replies.Drop(true)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- call(overdue{ctx}) }()
		servers.Until(t, "an answer to be dropped", func() bool { return proxy.Replies.Dropped() > dropped })
		cancel()
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v; want a deadline", what, err)
		}
		proxy.Replies.Drop(false)
	}
	claim := exclusive("key", "mine")
	unheard("acquire", func(ctx context.Context) error {
		g, err := s.Acquire(ctx, claim)
		if g.OK {
			t.Error("granted without an answer")
		}
		return err
	})
	if g, err := other.Acquire(t.Context(), exclusive("key", "theirs")); err != nil || g.OK {
		t.Fatalf("the server has not done it: %+v, %v", g, err)
	}
	before := granted(t, other, claim).Fence // by its id from anywhere
	if again := granted(t, s, claim); again.Fence != before {
		t.Errorf("asked again: token %d, not %d", again.Fence, before)
	}
	unheard("renew", func(ctx context.Context) error { return renew(ctx, s, claim) })
	if err := renew(t.Context(), s, claim); err != nil {
		t.Errorf("renewed again: %v", err)
	}
	unheard("release", func(ctx context.Context) error { return release(ctx, s, claim) })
	if err := release(t.Context(), s, claim); err != nil && !errors.Is(err, driver.ErrLost) {
		t.Errorf("released again: %v", err)
	}
	granted(t, other, exclusive("key", "next"))
}

// An overdue context is one whose deadline passes when it is cancelled.
type overdue struct{ context.Context }

func (c overdue) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// TestReset breaks connections that wait for their next use: nobody notices.
func TestReset(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, shared.Addr())
	s := must.Get(New([]string{proxy.Addr()}, nil))
	defer s.Close()
	claim := exclusive("reset", "mine")
	granted(t, s, claim)
	proxy.Reset()
	if err := renew(t.Context(), s, claim); err != nil {
		t.Errorf("renew: %v", err)
	}
	proxy.Reset()
	if err := release(t.Context(), s, claim); err != nil {
		t.Errorf("release: %v", err)
	}
	proxy.Reset()
	granted(t, s, exclusive("reset", "next"))
}

// TestYoungServer requests locks from a server that has just started, with little time: a claim that
// waits is refused for now and soon granted. A claim that does not wait gets an error, since a
// refusal would say that somebody has the key.
func TestYoungServer(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	s := must.Get(New([]string{m.Addr()}, nil))
	defer s.Close()
	var g driver.Grant
	ask := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tried, err := s.Acquire(ctx, exclusive("other", "other"))
		if err == nil && !tried.OK {
			t.Fatalf("a claim that does not wait is refused: %+v", tried)
		}
		g, err = s.Acquire(ctx, waiting("key", "id"))
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		return err == nil
	}
	servers.Until(t, "a refusal", func() bool {
		answered := ask()
		if g.OK {
			m.Restart()
		}
		return answered && !g.OK
	})
	if g.Pause <= 0 || !errors.Is(g.Blocked, errYoung) {
		t.Errorf("a young server gives %+v, want a pause and a reason", g)
	}
	servers.Until(t, "a grant", func() bool { return ask() && g.OK })
}

// TestClockIsLost takes away the item that tells the time, as eviction may: those
// who need it make another, which goes on where it was.
func TestClockIsLost(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	a, b := newStore(t, nil, m), newStore(t, nil, m)
	reader := func(id string) driver.Ask {
		c := exclusive("key", id)
		c.Weight, c.TTL = 1, 10*time.Minute
		return c
	}
	granted(t, a, reader("one"))
	for i, s := range []*Store{b, a} {
		m.Must("md "+s.opts.clock(), "HD")
		granted(t, s, reader(fmt.Sprint("more ", i)))
	}
	holders, err := a.Holders(t.Context(), "key")
	if err != nil || len(holders) != 3 {
		t.Fatalf("%d holders, %v; want 3", len(holders), err)
	}
	for _, h := range holders {
		if h.Left < 5*time.Minute || h.Left > 10*time.Minute || time.Since(h.Since).Abs() > time.Minute {
			t.Errorf("%+v", h)
		}
	}
}

// TestClockIsSpoiled lets the item that tells the time stay forever, or to another
// end than it has: nobody believes the time that it tells then, and a new one does.
func TestClockIsSpoiled(t *testing.T) {
	t.Parallel()
	for _, expiry := range []string{"0", "3600", "300"} {
		t.Run(expiry, func(t *testing.T) {
			t.Parallel()
			spoil(t, expiry)
		})
	}
}

func spoil(t *testing.T, expiry string) {
	m := servers.StartMemcached(t)
	s := newStore(t, nil, m)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, id := range []string{"one", "two"} {
		reader := exclusive("key", id)
		reader.Weight = 1
		granted(t, s, reader)
	}
	m.Must("touch "+s.opts.clock()+" "+expiry, "TOUCHED")
	const says = "is not as it was made"
	if g, err := s.Acquire(ctx, exclusive("key", "writer")); g.OK || err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("a writer beside readers: %+v, %v", g, err)
	}
	if holders, err := s.Holders(ctx, "key"); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%d holders, %v", len(holders), err)
	}
	servers.Until(t, "an answer to a new client", func() bool {
		err := must.Get(New([]string{m.Addr()}, nil)).reach(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return false
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a new client: %v", err)
		}
		return true
	})
	m.Must("md "+s.opts.clock(), "HD")
	if holders, err := s.Holders(ctx, "key"); err != nil || len(holders) != 2 {
		t.Errorf("with a new clock: %d holders, %v; want 2", len(holders), err)
	}
}
