package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
)

// documented returns the rules of the user that the package comment describes.
func documented(t *testing.T) (rules []string) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "ACL SETUSER locks on >secret ")
	list, _, ended := strings.Cut(list, "\n//\n")
	if !found || !ended {
		t.Fatal("doc.go does not say how to make a user")
	}
	return strings.Fields(strings.ReplaceAll(list, "\n//", " "))
}

// user makes a user and returns the URL to connect as such.
func user(r *servers.Redis, name string, rules []string) string {
	r.AddUser(name, "secret", rules...)
	return "redis://" + name + ":secret@" + r.Addr()
}

// TestPermissions lets a user do everything that has no more rights than the
// package comment lists.
func TestPermissions(t *testing.T) {
	servers.NeedRedis7(t)
	repeated(t)
	t.Parallel()
	drivertest.Run(t, opening(user(servers.StartRedis(t), "locks", documented(t))))
}

// everything makes use of each verb, and returns all errors.
func everything(url, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opened, err := driver.Open(ctx, unhurried(url))
	if err != nil {
		return err
	}
	s := opened.(*redislock.Store)
	claim := func(id string) driver.Claim {
		return driver.Claim{Key: key, ID: key + id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
	}
	holder, reader, waiter, late, gone := claim("holder"), claim("reader"), claim("waiter"), claim("late"), claim("gone")
	reader.Weight = 1
	all := []error{err}
	acquire := func(a driver.Ask) {
		_, err := s.Acquire(ctx, a)
		all = append(all, err)
	}
	end := func(errs []error) {
		for _, err := range errs {
			if !errors.Is(err, driver.ErrLost) {
				all = append(all, err)
			}
		}
	}
	acquire(driver.Ask{Claim: holder})
	acquire(driver.Ask{Claim: holder})
	asked := time.Now()
	acquire(driver.Ask{Claim: waiter, Wait: true})
	end(s.Renew(ctx, []driver.Renewal{{Claim: holder, Fence: 1}, {Claim: gone}}))
	end(s.Renew(ctx, []driver.Renewal{{Claim: gone}}))
	_, err = s.Holders(ctx, key)
	all = append(all, err)
	for _, err := range s.Keys(ctx, "") {
		all = append(all, err)
	}
	end(s.Release(ctx, []driver.Release{{Claim: holder}}))
	err = s.Break(ctx, key, driver.PublicID(waiter.ID))
	if !errors.Is(err, driver.ErrLost) || time.Since(asked) < waiter.Alive() { // A slow waiter loses its place.
		all = append(all, err)
	}
	acquire(driver.Ask{Claim: reader})
	reader.ID = key + "another"
	acquire(driver.Ask{Claim: reader})
	end(s.Release(ctx, []driver.Release{{Claim: reader}, {Claim: late, Late: true}}))
	reader.ID = key + "reader"
	end(s.Release(ctx, []driver.Release{{Claim: reader}}))
	_, err = s.Check(ctx)
	all = append(all, err)
	return errors.Join(append(all, s.Close())...)
}

// spared are rights without which all goes on, in some other way: waiters ask
// from time to time instead of being told, and the client library does without.
var spared = []string{
	"publish", "pubsub", "subscribe", "unsubscribe", "spublish", "ssubscribe", "sunsubscribe", "ping", "hello", "client",
}

// asking is what in a URL makes a Store use a right.
var asking = map[string]string{"select": "?db=1", "wait": "?wait=1"}

// TestMissingPermission takes one right after the other from a user, and expects
// an error that names it, or none.
func TestMissingPermission(t *testing.T) {
	single, cluster := servers.StartRedis(t), servers.StartCluster(t).Calm()
	rules := documented(t)
	for i, rule := range append(rules, "nothing") {
		name := strings.TrimPrefix(rule, "+")
		if rule != "nothing" && name == rule {
			continue // not a command
		}
		fewer := slices.DeleteFunc(slices.Clone(rules), func(other string) bool { return other == rule })
		url := user(single, "no-"+name, fewer)
		for _, node := range cluster.Nodes {
			user(node, "no-"+name, fewer)
			node.FlushScripts()
		}
		single.FlushScripts()
		if name == "cluster" {
			url = strings.Replace(url, single.Addr(), cluster.Nodes[i%3].Addr(), 1)
		}
		t.Run(name, func(t *testing.T) {
			err := everything(url+asking[name], name)
			switch {
			case rule == "nothing" || slices.Contains(spared, name):
				if err != nil {
					t.Error(err)
				}
			case err == nil:
				t.Error("all went well: is it needed?")
			case !strings.Contains(strings.ToLower(err.Error()), name):
				t.Errorf("nothing here names it: %v", err)
			}
		})
	}
}

// TestMissingKeyPermission expects that the error names a key.
func TestMissingKeyPermission(t *testing.T) {
	servers.NeedRedis7(t)
	r := servers.StartRedis(t)
	url := user(r, "stranger", append(documented(t), "resetkeys", "~other:*"))
	err := everything(url, "key")
	if err == nil || !strings.Contains(err.Error(), "holdfast:{") {
		t.Errorf("%v; want an error that names a key", err)
	}
	if err := everything(url+"?prefix=other:", "key"); err != nil {
		t.Errorf("with the prefix that is allowed: %v", err)
	}
}

// TestWaitWithoutMessages hands a lock over between users who may not be told.
func TestWaitWithoutMessages(t *testing.T) {
	single, cluster := servers.StartRedis(t), servers.StartCluster(t).Calm()
	for i, right := range []string{"-publish -spublish", "-subscribe -ssubscribe", "resetchannels"} {
		rules := append(documented(t), strings.Fields(right)...)
		// The subtests run at the same time: each right has a user and a key.
		deaf := fmt.Sprint("deaf", i)
		url := user(single, deaf, rules)
		for _, node := range cluster.Nodes {
			user(node, deaf, rules)
		}
		for kind, url := range map[string]string{
			"single":  url,
			"cluster": strings.Replace(url, single.Addr(), cluster.Nodes[0].Addr(), 1),
		} {
			t.Run(kind+" "+right, func(t *testing.T) {
				t.Parallel()
				handOver(t, deaf, openLocker(t, url), openLocker(t, url))
			})
		}
	}
}

// TestLostChannelIsWarnedOf takes the right to subscribe from a Locker that has used it.
// The log says so once, with the channel, and hand-overs go on.
func TestLostChannelIsWarnedOf(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	said := ""
	for i := range 10 {
		said = deafened(t, r, fmt.Sprint("deafened", i))
		if !strings.Contains(said, "not been confirmed yet") { // by a slow server, which is warned of, too
			break
		}
	}
	if strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, "NOPERM") || !strings.Contains(said, "subscribe to channel holdfast:") {
		t.Errorf("the log says %q; want one warning of the right that is gone", said)
	}
}

// deafened lets a user lose the right, and returns what the log says.
func deafened(t *testing.T, r *servers.Redis, name string) string {
	t.Helper()
	url := user(r, name, documented(t))
	var mu sync.Mutex
	var warned bytes.Buffer
	log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return warned.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelWarn}))
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return warned.String()
	}
	a, b := openLocker(t, url), newLocker(t, openStore(t, url), &holdfast.Options{Logger: log})
	handOver(t, name+" before", a, b)
	r.Must("ACL", "SETUSER", name, "resetchannels") // It ends the subscriptions too.
	turn := 0
	more := func() {
		turn++
		handOver(t, fmt.Sprint(name, " after ", turn), a, b)
	}
	until(t, "a warning", func() bool {
		more()
		return said() != ""
	})
	for range 4 {
		more()
	}
	return said()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// handOver lets one process wait for a lock of the other.
func handOver(t *testing.T, key string, a, b *holdfast.Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	held, err := servers.Patient(ctx, a.Lock, key)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		lock, err := servers.Patient(ctx, b.Lock, key)
		if err == nil {
			err = unlockAtOnce(lock)
		}
		got <- err
	}()
	awaitLine(t, a, key, 1)
	if err := unlock(held); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the one who waited: %v", err)
	}
}
