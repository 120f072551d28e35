package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/goredis"
)

// patience bounds every wait. A working store needs a hundredth.
const patience = time.Minute

// eventually waits until f returns "". Before that, f returns what is wrong.
func eventually(t *testing.T, f func() string) {
	t.Helper()
	var wrong string
	defer func() {
		if wrong != "" {
			t.Log(wrong)
		}
	}()
	servers.Until(t, "nothing to be wrong", func() bool {
		wrong = f()
		return wrong == ""
	})
}

func exclusive(key, id string) driver.Claim {
	return driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
}

func granted(t *testing.T, s driver.Store, c driver.Claim) {
	t.Helper()
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: c}); err != nil || !g.OK {
		t.Fatalf("Acquire of %s by %s: %+v, %v", c.Key, c.ID, g, err)
	}
}

func open(t *testing.T, opts *redis.Options) (*redislock.Store, *redis.Client) {
	t.Helper()
	client := redis.NewClient(opts)
	store := must.Get(goredis.New(client, nil))
	t.Cleanup(func() { store.Close(); client.Close() })
	return store, client
}

// unhurried are the options of a client that gives a server a minute to answer. By default
// go-redis sends a command again after three seconds, and a release that arrives twice
// finds nothing.
func unhurried(r *servers.Redis) *redis.Options {
	return &redis.Options{Addr: r.Addr(), DialTimeout: patience, ReadTimeout: patience}
}

// wait watches for a claim and asks once, so that it waits in the queue.
func wait(t *testing.T, s *redislock.Store, c driver.Claim) (woken chan driver.Grant) {
	t.Helper()
	woken = make(chan driver.Grant, 100)
	stop, err := s.Watch(t.Context(), c, func(g driver.Grant) { woken <- g })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: c, Wait: true}); err != nil || g.OK {
		t.Fatalf("Acquire behind another: %+v, %v", g, err)
	}
	return woken
}

// TestHungServer has the default options, with which go-redis itself waits for
// three seconds, four times.
func TestHungServer(t *testing.T) {
	r := goredis.Empty()
	for _, prompt := range []bool{false, true} {
		t.Run(fmt.Sprint("ContextTimeoutEnabled=", prompt), func(t *testing.T) {
			s, _ := open(t, &redis.Options{Addr: r.Addr(), ContextTimeoutEnabled: prompt})
			c := exclusive(t.Name(), "id")
			granted(t, s, c)
			r.Pause()
			defer r.Resume()
			for name, call := range map[string]func(context.Context) error{
				"Acquire": func(ctx context.Context) error { _, err := s.Acquire(ctx, driver.Ask{Claim: c}); return err },
				"Renew":   func(ctx context.Context) error { return s.Renew(ctx, []driver.Renewal{{Claim: c}, {Claim: c}})[0] },
				"Release": func(ctx context.Context) error { return s.Release(ctx, []driver.Release{{Claim: c}, {Claim: c}})[1] },
				"Holders": func(ctx context.Context) error { _, err := s.Holders(ctx, c.Key); return err },
				"Age":     func(ctx context.Context) error { _, err := s.Age(ctx); return err },
				"Watch":   func(ctx context.Context) error { _, err := s.Watch(ctx, c, func(driver.Grant) {}); return err },
			} {
				for _, parent := range []context.Context{t.Context(), context.Background()} {
					start := time.Now()
					ctx := new(bounded.Context).Start(parent, start.Add(50*time.Millisecond))
					err := call(ctx)
					ctx.End()
					if took := time.Since(start); err == nil || took > patience/2 {
						t.Errorf("%s returned %v after %v, want an error when the context had ended", name, err, took)
					}
				}
			}
			r.Resume()
			eventually(t, func() string {
				if _, err := s.Acquire(t.Context(), driver.Ask{Claim: c}); err != nil {
					return err.Error()
				}
				return ""
			})
		})
	}
}

// TestRefusedConnectionIsNamed: without a server, go-redis dials for longer than a call may
// take, so the reason comes after the end of the call. A later call has the reason in its error.
func TestRefusedConnectionIsNamed(t *testing.T) {
	for _, prompt := range []bool{false, true} {
		store, _ := open(t, &redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: prompt})
		eventually(t, func() string {
			ctx := new(bounded.Context).Start(t.Context(), time.Now().Add(50*time.Millisecond))
			defer ctx.End()
			_, err := store.Acquire(ctx, driver.Ask{Claim: exclusive("key", "id")})
			if !errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Sprintf("with ContextTimeoutEnabled %v the error is %v, want the refused connection", prompt, err)
			}
			return ""
		})
	}
}

// TestHooks: hooks that the user adds later see the commands of a call, whether or not somebody
// can cancel the call. Applications trace, count or rewrite commands by hooks, and
// Client.WithTimeout drops the hooks.
func TestHooks(t *testing.T) {
	r := goredis.Empty()
	for _, prompt := range []bool{false, true} {
		s, client := open(t, &redis.Options{Addr: r.Addr(), ContextTimeoutEnabled: prompt})
		var seen counter
		client.AddHook(&seen)
		for _, parent := range []context.Context{t.Context(), context.Background()} {
			before := seen.Load()
			ctx := new(bounded.Context).Start(parent, time.Now().Add(patience))
			_, err := s.Acquire(ctx, driver.Ask{Claim: exclusive(t.Name(), "id")})
			ctx.End()
			if err != nil || seen.Load() == before {
				t.Errorf("with ContextTimeoutEnabled %v a hook has seen no command of an Acquire: %v", prompt, err)
			}
		}
	}
}

// A counter is a hook that counts commands.
type counter struct{ atomic.Int64 }

func (*counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.Add(1)
		return next(ctx, cmd)
	}
}

func (*counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestCancelled cancels a call that has no deadline.
func TestCancelled(t *testing.T) {
	r := goredis.Empty()
	s, _ := open(t, &redis.Options{Addr: r.Addr()})
	granted(t, s, exclusive("key", "id"))
	r.Pause()
	defer r.Resume()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	_, err := s.Acquire(ctx, driver.Ask{Claim: exclusive("key", "other")})
	if took := time.Since(start); !errors.Is(err, context.Canceled) || took > patience/2 {
		t.Errorf("got %v after %v", err, took)
	}
}

func TestKilledSubscription(t *testing.T) {
	r := goredis.Empty()
	s, _ := open(t, unhurried(r))
	holder, waiter := exclusive("held", "holder"), exclusive("held", "waiter")
	granted(t, s, holder)
	woken := wait(t, s, waiter)
	for range 5 {
		servers.Until(t, "a connection that listens", func() bool {
			return r.Must("CLIENT", "KILL", "TYPE", "pubsub") == int64(1)
		})
		select {
		case g := <-woken:
			if g.OK {
				t.Fatal("granted while another holds")
			}
		case <-time.After(patience):
			t.Fatal("a waiter was not woken when its store listened again")
		}
	}
	grants(t, s)
}

func TestForgottenScripts(t *testing.T) {
	r := goredis.Empty()
	s, _ := open(t, unhurried(r))
	var renewals []driver.Renewal
	var releases []driver.Release
	for i := range 250 {
		c := exclusive(fmt.Sprint("key ", i), "id")
		renewals, releases = append(renewals, driver.Renewal{Claim: c}), append(releases, driver.Release{Claim: c})
		if i%50 == 0 {
			r.FlushScripts()
		}
		granted(t, s, c)
	}
	for _, call := range []func() []error{
		func() []error { return s.Renew(t.Context(), renewals) },
		func() []error { return s.Release(t.Context(), releases) },
	} {
		r.FlushScripts()
		for i, err := range call() {
			if err != nil {
				t.Errorf("claim %d: %v", i, err)
			}
		}
	}
}

func TestWait(t *testing.T) {
	r := servers.StartRedis(t)
	servers.StartReplica(t, r.Addr())
	r.AwaitReplicas(1)
	client := redis.NewClient(unhurried(r))
	defer client.Close()
	one, two := must.Get(goredis.New(client, &redislock.Options{Wait: 1})), must.Get(goredis.New(client, &redislock.Options{Wait: 2}))
	defer one.Close()
	defer two.Close()
	eventually(t, func() string { // A slow replica confirms too late.
		if g, err := one.Acquire(t.Context(), driver.Ask{Claim: exclusive("key", "id")}); err != nil || !g.OK {
			return fmt.Sprint(g, err)
		}
		return ""
	})
	eventually(t, func() string {
		g, err := two.Acquire(t.Context(), driver.Ask{Claim: exclusive("other", "id")})
		if err == nil {
			t.Fatalf("got %+v, want that one replica of two has it", g)
		}
		if !strings.Contains(err.Error(), "1 of the 2 replicas") {
			return fmt.Sprintf("got %v, want that one replica of two has it", err)
		}
		return ""
	})
}

func TestClose(t *testing.T) {
	r := goredis.Empty()
	client := redis.NewClient(unhurried(r))
	defer client.Close()
	s := must.Get(goredis.New(client, nil))
	granted(t, s, exclusive("key", "holder"))
	wait(t, s, exclusive("key", "waiter"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { // Close does not wait forever, and calls of tests before may be about to end.
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for _, of := range []string{"goredis.(*subscription)", "goredis.(*conn)", "go-redis/v9.(*PubSub)"} {
			if strings.Contains(string(stacks), of) {
				return fmt.Sprintf("a goroutine of %s is left:\n%s", of, stacks)
			}
		}
		return ""
	})
	eventually(t, func() string {
		if left := r.Must("CLIENT", "LIST", "TYPE", "pubsub"); left != "" {
			return fmt.Sprint("the server still has ", left)
		}
		return ""
	})
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the caller's client: %v", err)
	}
}

func TestCloseWhileHung(t *testing.T) {
	r := goredis.Empty()
	r.Pause()
	defer r.Resume()
	s, _ := open(t, &redis.Options{Addr: r.Addr(), ReadTimeout: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Watch(ctx, exclusive("key", "id"), func(driver.Grant) {}); err == nil {
		t.Fatal("Watch of a server that hangs")
	}
	start := time.Now()
	s.Close()
	if took := time.Since(start); took > patience/2 {
		t.Errorf("took %v", took)
	}
}

func TestRefusedClients(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	for _, client := range []redis.UniversalClient{ring, nil} {
		_, storeErr := goredis.New(client, nil)
		_, connErr := goredis.Conn(client)
		for _, err := range []error{storeErr, connErr} {
			if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "want a *redis.Client") {
				t.Errorf("of %T: got %v", client, err)
			}
		}
	}
}
