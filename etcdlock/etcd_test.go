package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = time.Minute

// shared is a server for the tests that do it no harm. Their keys differ.
var shared *servers.Etcd

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartEtcd(tb) }))
}

// opened opens a store, also if the server is slow.
func opened(t testing.TB, url string) (store driver.Store) {
	t.Helper()
	servers.Await(t, "store", func() (err error) {
		store, err = driver.Open(t.Context(), url)
		return err
	})
	return store
}

// openStore opens a store that is closed with the test.
func openStore(t testing.TB, url string) *etcdlock.Store {
	t.Helper()
	store := opened(t, url)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store.(*etcdlock.Store)
}

// openLocker opens a Locker, also if the server is slow.
func openLocker(t *testing.T, url string, opts *holdfast.Options) (lk *holdfast.Locker) {
	t.Helper()
	servers.Await(t, "Locker", func() (err error) {
		lk, err = holdfast.Open(t.Context(), url, opts)
		return err
	})
	return lk
}

// locker opens a Locker that is closed with the test.
func locker(t *testing.T, url string, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	lk := openLocker(t, url, opts)
	t.Cleanup(func() {
		if err := lk.Close(); err != nil {
			t.Error(err)
		}
	})
	return lk
}

// locked acquires a lock, also if the server is slow.
func locked(t *testing.T, lk *holdfast.Locker, key string) *holdfast.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := servers.Patient(ctx, lk.Lock, key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func unlock(l *holdfast.Lock) error { return unlocking.Release(l.Unlock) }

// admin is a client that shows and changes what the tests are about.
func admin(t testing.TB, addrs ...string) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Logger: zap.NewNop(), DialTimeout: patience}
	for _, addr := range addrs {
		config.Endpoints = append(config.Endpoints, "http://"+addr)
	}
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// exclusive asks for a claim that does not expire while a test is slow.
func exclusive(key, id string) driver.Ask {
	return driver.Ask{
		Claim: driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: 5 * time.Minute, Owner: id},
		Span:  1,
	}
}

func waiting(key, id string) driver.Ask {
	a := exclusive(key, id)
	a.Wait = true
	return a
}

func granted(t testing.TB, s driver.Store, a driver.Ask) driver.Grant {
	t.Helper()
	g := asked(t, s, a)
	if !g.OK {
		t.Fatalf("%s was refused %s", a.ID, a.Key)
	}
	return g
}

func refused(t testing.TB, s driver.Store, a driver.Ask) driver.Grant {
	t.Helper()
	g := asked(t, s, a)
	if g.OK {
		t.Fatalf("%s was granted %s", a.ID, a.Key)
	}
	return g
}

// renew renews a claim, once.
func renew(ctx context.Context, s driver.Store, c driver.Claim) error {
	return s.Renew(ctx, []driver.Renewal{{Claim: c}})[0]
}

// answered is the error with which etcd answers a call; nil if etcd does what is asked.
func answered(t testing.TB, call func(ctx context.Context) error) (err error) {
	t.Helper()
	servers.Await(t, "an answer", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience/3)
		defer cancel()
		if err = call(ctx); errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		return nil
	})
	return err
}

// asked asks until the server answers.
func asked(t testing.TB, s driver.Store, a driver.Ask) (g driver.Grant) {
	t.Helper()
	servers.Await(t, "an answer", func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience/3)
		defer cancel()
		g, err = s.Acquire(ctx, a)
		return err
	})
	return g
}

// works takes a lock in the store that a URL names.
func works(t *testing.T, url string) {
	t.Helper()
	if err := unlock(locked(t, locker(t, url, nil), "works")); err != nil {
		t.Fatal(err)
	}
}

// fails opens a store and wants an error with these words. A server that is slow may fail
// in another way before, or let Open go on without the check of the settings.
func fails(t *testing.T, url string, words ...string) {
	t.Helper()
	servers.Await(t, "refusal", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), patience/3)
		defer cancel()
		lk, err := holdfast.Open(ctx, url, nil)
		if err == nil {
			return errors.Join(fmt.Errorf("%s was opened", url), lk.Close())
		}
		if strings.Contains(err.Error(), "moonlight") {
			t.Errorf("%v: shows the password", err)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				return fmt.Errorf("%s: %w: does not tell of %q", url, err, word)
			}
		}
		return nil
	})
}
