package etcdlock_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/etcdlock"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = time.Minute

// shared is a server for the tests that do it no harm. Their keys differ.
var shared *servers.Etcd

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartEtcd(tb) }))
}

// openStore opens a store that is closed with the test.
func openStore(t *testing.T, url string) *etcdlock.Store {
	t.Helper()
	store, err := driver.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store.(*etcdlock.Store)
}

// locker opens a Locker that is closed with the test.
func locker(t *testing.T, url string, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	lk, err := holdfast.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lk.Close(); err != nil {
			t.Error(err)
		}
	})
	return lk
}

// admin is a client that shows and changes what the tests are about.
func admin(t *testing.T, addrs ...string) *clientv3.Client {
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

func exclusive(key, id string) driver.Claim {
	return driver.Claim{
		Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: 15 * time.Second, Span: 1, Owner: id,
	}
}

func waiting(key, id string) driver.Claim {
	c := exclusive(key, id)
	c.Wait = true
	return c
}

func granted(t *testing.T, s driver.Store, c driver.Claim) driver.Grant {
	t.Helper()
	g := asked(t, s, c)
	if !g.OK {
		t.Fatalf("%s was refused %s", c.ID, c.Key)
	}
	return g
}

func refused(t *testing.T, s driver.Store, c driver.Claim) driver.Grant {
	t.Helper()
	g := asked(t, s, c)
	if g.OK {
		t.Fatalf("%s was granted %s", c.ID, c.Key)
	}
	return g
}

// asked asks until the server answers.
func asked(t *testing.T, s driver.Store, c driver.Claim) (g driver.Grant) {
	t.Helper()
	eventually(t, "an answer", func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience/3)
		defer cancel()
		g, err = s.Acquire(ctx, c)
		return err
	})
	return g
}

// eventually calls f until it returns nil.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in %v: %v", what, patience, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// works takes a lock in the store that a URL names.
func works(t *testing.T, url string) {
	t.Helper()
	lock, err := patiently(t.Context(), locker(t, url, nil), "works")
	if err == nil {
		err = unlock(lock)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fails opens a store and wants an error with these words.
func fails(t *testing.T, url string, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience/3)
	defer cancel()
	lk, err := holdfast.Open(ctx, url, nil)
	if err == nil {
		lk.Close()
		t.Errorf("%s was opened", url)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v: does not tell of %q", url, err, word)
		}
	}
	if strings.Contains(err.Error(), "moonlight") {
		t.Errorf("%v: shows the password", err)
	}
}
