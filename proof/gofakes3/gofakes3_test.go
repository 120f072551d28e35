// Package gofakes3_test runs locks on gofakes3, the S3 of many Go tests.
package gofakes3_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/internal/unproved"
	"github.com/holdfast-go/holdfast/s3lock"
)

const bucket = "locks"

// start starts a server in this process and returns its endpoint. The server does not see the headers
// that forget names.
func start(t *testing.T, forget ...string) (endpoint string) {
	t.Helper()
	objects := s3mem.New()
	if err := objects.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(objects, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range forget {
			r.Header.Del(name)
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// at returns the URL of the bucket of a server.
func at(t *testing.T, endpoint string) string {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(keys, []byte("[default]\naws_access_key_id = a\naws_secret_access_key = b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "s3://" + bucket + "?look=20ms&endpoint=" + endpoint + "&credentials=" + keys
}

// TestHandOver hands a lock over from one process to another, with a larger token.
func TestHandOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := at(t, start(t))
	locker := func() *holdfast.Locker {
		locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) })
		t.Cleanup(func() { locks.Close() })
		return locks
	}
	one, other := locker(), locker()
	held := must.Get(servers.Patient(ctx, one.Lock, "key"))
	if _, err := servers.Patient(ctx, other.TryLock, "key"); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("%v, want ErrHeld", err)
	}
	next := make(chan *holdfast.Lock, 1)
	go func() { next <- must.Get(servers.Patient(ctx, other.Lock, "key")) }()
	servers.Until(t, "the waiter to wait in the queue", func() bool {
		holders, err := one.Holders(ctx, "key")
		return err == nil && len(holders) == 2
	})
	first := held.Fence()
	if err := unlocking.Release(held.Unlock); err != nil {
		t.Error(err)
	}
	l := <-next
	token, loss := l.Fence(), l.Err()
	if err := unlocking.AtOnce(l); err != nil {
		t.Fatal(err)
	}
	if token == 0 && loss != nil {
		unproved.Skipf(t, "that the next token is larger: %v", loss)
	}
	if token <= first {
		t.Errorf("token %d after %d", token, first)
	}
}

// A racer writes the objects of a bucket.
type racer struct{ bucket *s3lock.Bucket }

func (r racer) Read(ctx context.Context, key string) (caslock.Record, error) {
	o, err := r.bucket.Get(ctx, key)
	return caslock.Record{Version: o.Version, Data: o.Data}, err
}

func (r racer) Swap(ctx context.Context, key, version string, data []byte, _ time.Duration) (string, error) {
	err := r.bucket.Put(ctx, key, version, data, 1)
	if errors.Is(err, fence.ErrChanged) {
		return "", caslock.ErrConflict
	}
	if err != nil {
		return "", err
	}
	o, err := r.bucket.Get(ctx, key)
	return o.Version, err
}

// TestRaces has one client of 8 win each race for an object.
func TestRaces(t *testing.T) {
	t.Parallel()
	endpoint := start(t)
	conditionaltest.Race(t, 60, func() conditionaltest.Racer {
		client := s3.New(s3.Options{
			BaseEndpoint: &endpoint, UsePathStyle: true, Region: "us-east-1",
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
			}),
		})
		return racer{must.Get(s3lock.NewBucket(client, bucket, ""))}
	})
}

// TestIgnoredConditions has Open name the promises that a server breaks if a proxy before it removes
// the conditions of writes.
func TestIgnoredConditions(t *testing.T) {
	t.Parallel()
	const create, replace, revive = "created an object that was there", "replaced an object that had another version", "replaced an object that was not there"
	for header, broken := range map[string][]string{
		"If-None-Match": {create},
		"If-Match":      {replace, revive},
	} {
		url := at(t, start(t, header))
		_, err := servers.Answer(t.Context(), func(ctx context.Context) (driver.Store, error) {
			s, err := driver.Open(ctx, url)
			if err == nil {
				err = s.Close()
			}
			return nil, err
		})
		if !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("without %s: %v, want ErrInvalid", header, err)
			continue
		}
		for _, promise := range []string{create, replace, revive} {
			named := slices.Contains(broken, promise)
			if strings.Contains(err.Error(), promise) != named {
				t.Errorf("without %s: %v; %q is broken: %v", header, err, promise, named)
			}
		}
	}
}
