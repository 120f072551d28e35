package natslock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/natslock"
)

// dialed connects as an operator.
func dialed(t testing.TB, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	conn := must.Get(nats.Connect(url, nats.Timeout(time.Minute)))
	t.Cleanup(conn.Close)
	return conn, must.Get(jetstream.New(conn, jetstream.WithDefaultTimeout(time.Minute)))
}

func asking(key, id string) driver.Ask {
	return driver.Ask{Claim: driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}, Span: 1}
}

// The statement of Schema makes the stream that Create makes, and Check finds nothing wrong.
func TestSchema(t *testing.T) {
	t.Parallel()
	const stream = "by-hand"
	conn, _ := dialed(t, shared.URL())
	s := must.Get(natslock.New(conn, &natslock.Options{Stream: stream, Synced: true}))
	defer s.Close()
	if _, err := s.Check(t.Context()); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Check before the stream exists returned %v", err)
	}
	if _, err := s.Acquire(t.Context(), asking("k", "early")); err == nil || !strings.Contains(err.Error(), "holdfast init") {
		t.Errorf("Acquire before the stream exists returned %v", err)
	}
	parts := regexp.MustCompile(`^nats request '(\S+)' '(.+)'$`).FindStringSubmatch(s.Schema()[0])
	if parts == nil {
		t.Fatalf("the statement is %s", s.Schema()[0])
	}
	reply := must.Get(conn.Request(parts[1], []byte(parts[2]), time.Minute))
	if strings.Contains(string(reply.Data), `"error"`) {
		t.Fatalf("%s", reply.Data)
	}
	if err := s.Create(t.Context()); err != nil {
		t.Errorf("Create beside the stream: %v", err)
	}
	if warnings, err := s.Check(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("%q, %v", warnings, err)
	}
	if g, err := s.Acquire(t.Context(), asking("k", "first")); err != nil || !g.OK {
		t.Errorf("%+v, %v", g, err)
	}
}

// Check names each setting that weakens a promise.
func TestCheck(t *testing.T) {
	t.Parallel()
	conn, js := dialed(t, shared.URL())
	for what, change := range map[string]func(*jetstream.StreamConfig){
		"in memory":            func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"max_msgs_per_subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 },
		"max_msgs)":            func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 },
		"max_bytes":            func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 },
		"max_age":              func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"discard":              func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew },
		"deny_purge":           func(c *jetstream.StreamConfig) { c.DenyPurge = false },
		"allow_rollup_hdrs":    func(c *jetstream.StreamConfig) { c.AllowRollup, c.DenyPurge = true, false },
		"begins with sequence": func(c *jetstream.StreamConfig) { c.FirstSeq = 0 },
		"republish":            func(c *jetstream.StreamConfig) { c.RePublish = nil },
		"allow_msg_ttl":        func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false },
		"the subjects":         func(c *jetstream.StreamConfig) { c.Subjects = []string{c.Name + ".other"}; c.RePublish = nil },
		"no_ack":               func(c *jetstream.StreamConfig) { c.NoAck = true },
		"retention)":           func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
		"subject_transform": func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: c.Subjects[0], Destination: c.Name + ".other.>"}
		},
		"subject_delete_marker": func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL = time.Minute },
		"max_msg_size":          func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 },
		"sync_interval: always": nil,
	} {
		t.Run(what, func(t *testing.T) {
			stream := "check-" + strings.ToLower(rand.Text())
			s := must.Get(natslock.New(conn, &natslock.Options{Stream: stream, Synced: change != nil}))
			defer s.Close()
			if err := s.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			if change != nil {
				config := must.Get(js.Stream(t.Context(), stream)).CachedInfo().Config
				if err := js.DeleteStream(t.Context(), stream); err != nil {
					t.Fatal(err)
				}
				change(&config)
				must.Get(js.CreateStream(t.Context(), config))
			}
			warnings, err := s.Check(t.Context())
			text := strings.Join(warnings, "\n")
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, what) || err != nil && !errors.Is(err, driver.ErrInvalid) {
				t.Errorf("Check says %q", text)
			}
		})
	}
}

// A new stream of the same name knows no version of the old stream, and its tokens are larger.
func TestStreamReplaced(t *testing.T) {
	t.Parallel()
	const stream = "replaced"
	conn, js := dialed(t, shared.URL())
	s := must.Get(natslock.New(conn, &natslock.Options{Stream: stream, Synced: true}))
	defer s.Close()
	other := must.Get(natslock.New(conn, &natslock.Options{Stream: stream, Synced: true}))
	defer other.Close()
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := must.Get(s.Acquire(t.Context(), asking("k", "first")))
	if err := js.DeleteStream(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := must.Get(other.Acquire(t.Context(), asking("k", "second")))
	if !second.OK || second.Fence <= first.Fence {
		t.Errorf("%+v after %+v", second, first)
	}
	// s still knows the record of the old stream, and tries to change it.
	if err := s.Renew(t.Context(), []driver.Renewal{{Claim: asking("k", "first").Claim}}); err == nil || !errors.Is(err[0], driver.ErrLost) {
		t.Errorf("a renewal of a lock of the old stream returned %v", err)
	}
	if err := other.Renew(t.Context(), []driver.Renewal{{Claim: asking("k", "second").Claim}}); err != nil {
		t.Errorf("a renewal of the lock in the new stream returned %v", err)
	}
}

// A request that was sent before the connection closed may have been carried out.
func TestConnectionClosed(t *testing.T) {
	t.Parallel()
	const stream = "closed"
	p := servers.StartProxy(t, shared.Direct())
	conn, _ := dialed(t, "nats://"+p.Addr())
	s := must.Get(natslock.New(conn, &natslock.Options{Stream: stream}))
	defer s.Close()
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	must.Get(s.Acquire(t.Context(), asking("k", "first")))
	p.Blackhole(true)
	failed := make(chan error)
	sent := conn.Stats().OutMsgs
	go func() {
		_, err := s.Acquire(t.Context(), asking("k", "first"))
		failed <- err
	}()
	for conn.Stats().OutMsgs == sent {
		runtime.Gosched()
	}
	conn.Close()
	if err := <-failed; err == nil || errors.Is(err, driver.ErrUnwritten) {
		t.Errorf("an Acquire that was sent returned %v", err)
	}
	if _, err := s.Acquire(t.Context(), asking("k", "first")); !errors.Is(err, driver.ErrUnwritten) {
		t.Errorf("an Acquire over a closed connection returned %v", err)
	}
}

// A context without a deadline bounds a Watch as well.
func TestWatchWithoutDeadline(t *testing.T) {
	t.Parallel()
	conn, _ := dialed(t, shared.URL())
	s := must.Get(natslock.New(conn, nil))
	defer s.Close()
	stop, err := s.Watch(t.Context(), asking("k", "a").Claim, func(driver.Grant) {})
	if err != nil {
		t.Fatal(err)
	}
	stop()
}

// A call whose context has no deadline ends if its answer is lost. The call takes a minute.
func TestAnswerLostWithoutDeadline(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a minute: make prove")
	}
	t.Parallel()
	proxy := servers.StartProxy(t, shared.Addr())
	conn, _ := dialed(t, "nats://"+proxy.Addr())
	s := must.Get(natslock.New(conn, nil))
	defer s.Close()
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), asking("lost answer", "a")); err != nil {
		t.Fatal(err)
	}
	proxy.Blackhole(true)
	if _, err := s.Holders(t.Context(), "lost answer"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call without an answer returns %v", err)
	}
}

// The rights of docs/stores/nats.md are enough to lock, to wait, and to list.
func TestRights(t *testing.T) {
	t.Parallel()
	server := servers.StartNATS(t, `
		authorization { timeout: 60, users: [
			{ user: admin, password: a }
			{ user: locks, password: l, permissions: {
				publish: ["holdfast.record.>", "$JS.API.STREAM.INFO.holdfast", "$JS.API.STREAM.MSG.GET.holdfast"]
				subscribe: ["holdfast.change.>", "_INBOX.>"]
			} }
			{ user: lists, password: l, permissions: {
				publish: ["$JS.API.STREAM.INFO.holdfast", "$JS.API.STREAM.MSG.GET.holdfast", "$JS.API.CONSUMER.CREATE.holdfast.>", "$JS.API.CONSUMER.MSG.NEXT.holdfast.>"]
				subscribe: ["_INBOX.>"]
			} }
		] }`)
	opened(t, "nats://admin:a@"+server.Addr())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := func(user string) *holdfast.Locker { return locker(t, "nats://"+user+":l@"+server.Addr()) }
	handsOver(t, ctx, open("locks"), open("locks"), func(held *holdfast.Lock) {
		lists := open("lists")
		var keys []string
		for key, err := range lists.Keys(ctx, "") {
			if err != nil {
				t.Error(err)
			}
			keys = append(keys, key)
		}
		if !slices.Equal(keys, []string{"k"}) {
			t.Errorf("Keys yields %q", keys)
		}
		servers.Insist(t, func(ctx context.Context) (any, error) {
			// The server does not answer a publish without the right.
			breaking, late := context.WithTimeout(ctx, time.Second)
			defer late()
			err := lists.Break(breaking, "k", held.ID())
			switch {
			case errors.Is(err, nats.ErrPermissionViolation):
				return nil, nil
			case err == nil:
				return nil, errors.New("a user who may only read ends a lock")
			}
			return nil, err
		})
		at := "nats://lists:l@" + server.Addr()
		store := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at) })
		defer store.Close()
		if _, err := store.(driver.Watcher).Watch(ctx, asking("k", "another").Claim, func(driver.Grant) {}); !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("a user who may not subscribe to changes waits for one: %v", err)
		}
	})
}

// locker opens a Locker.
func locker(t *testing.T, url string) *holdfast.Locker {
	t.Helper()
	l := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) })
	t.Cleanup(func() { l.Close() })
	return l
}

// handsOver lets a process hold a lock, another process wait for the lock, and calls meanwhile.
func handsOver(t *testing.T, ctx context.Context, a, b *holdfast.Locker, meanwhile func(held *holdfast.Lock)) {
	t.Helper()
	held := must.Get(servers.Patient(ctx, a.Lock, "k"))
	waited := make(chan error)
	go func() {
		lock, err := servers.Patient(ctx, b.Lock, "k")
		if err == nil {
			err = unlocking.AtOnce(lock)
		}
		waited <- err
	}()
	servers.Until(t, "a waiter", func() bool {
		holders := servers.Insist(t, func(ctx context.Context) ([]holdfast.Holder, error) { return a.Holders(ctx, "k") })
		return len(holders) == 2
	})
	meanwhile(held)
	if err := errors.Join(unlocking.Release(held.Unlock), <-waited); err != nil {
		t.Error(err)
	}
}

// Servers that refuse a login for a while, as while a password is changed, do not end the
// connection for good.
func TestLoginRefused(t *testing.T) {
	t.Parallel()
	other := servers.StartNATS(t, `authorization { timeout: 60, user: admin, password: other }`)
	server := servers.StartNATS(t, `authorization { timeout: 60, user: admin, password: a }`)
	p := servers.StartProxy(t, server.Direct())
	s := opened(t, "nats://admin:a@"+p.Addr())
	must.Get(s.Acquire(t.Context(), asking("k", "first")))
	refused := p.Accepted() + 5
	p.Redirect(other.Direct())
	servers.Until(t, "refused logins", func() bool { return p.Accepted() >= refused })
	p.Redirect(server.Direct())
	servers.Until(t, "an answer after the logins", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		g, err := s.Acquire(ctx, asking("k", "first"))
		if err == nil && !g.OK {
			t.Fatalf("%+v", g)
		}
		return err == nil
	})
}

// Locks stand while a member is away, and can be acquired once the stream has a leader.
func TestMemberFails(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	t.Parallel()
	cluster := servers.StartNATSCluster(t)
	url := cluster.URL() + "?replicas=3&synced=true"
	store := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
	if err := store.(driver.Creator).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	locks := must.Get(holdfast.New(store, &holdfast.Options{TTL: 30 * time.Second}))
	defer locks.Close()
	held := must.Get(servers.Patient(t.Context(), locks.Lock, "held"))
	last := held.Fence()
	for i, node := range cluster.Nodes {
		node.Kill()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		lock, err := locks.Lock(ctx, "other")
		for err != nil && ctx.Err() == nil { // An election takes longer than Lock waits.
			t.Logf("with member %d away: %v", i, err)
			lock, err = locks.Lock(ctx, "other")
		}
		if err != nil {
			t.Fatalf("with member %d away: %v", i, err)
		}
		if lock.Fence() <= last && i > 0 {
			t.Errorf("token %d after %d", lock.Fence(), last)
		}
		last = lock.Fence()
		if err := unlocking.Release(lock.Unlock); err != nil {
			t.Error(err)
		}
		node.Restart()
		node.AwaitCurrent() // Otherwise two of three would be away.
	}
	if err := unlocking.Release(held.Unlock); err != nil {
		t.Errorf("the lock that was held meanwhile: %v", err)
	}
}

// One client of 8 wins each race for the last message of a subject.
func TestRaces(t *testing.T) {
	t.Parallel()
	opened(t, shared.URL()+"?stream=races") // makes the stream
	conditionaltest.Race(t, 200, func() conditionaltest.Racer {
		conn, _ := dialed(t, shared.URL()) // A connection of a URL ends after seconds of silence.
		s := must.Get(natslock.New(conn, &natslock.Options{Stream: "races"}))
		t.Cleanup(func() { s.Close() })
		return s.Register()
	})
}
