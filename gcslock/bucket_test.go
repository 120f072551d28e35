package gcslock_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/gcslock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func bucket(t *testing.T) *gcslock.Bucket {
	t.Helper()
	b, err := gcslock.NewBucket(http.DefaultClient, servers.GCSBucket, &gcslock.Options{Endpoint: "http://" + shared.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A holder that stalls between its check and its write loses its lock, and is refused by the
// bucket.
func TestGuardedObject(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	bucket := bucket(t)
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
		return holdfast.Open(ctx, under(t, shared.URL(), prefix), nil)
	})
	defer locks.Close()
	conditionaltest.Guarded(t, bucket, locks, prefix)
}

// An object that another program has written has the data as they are, and no token.
func TestObjectOfAnotherProgram(t *testing.T) {
	t.Parallel()
	name := strings.ToLower(rand.Text())
	upload(t, name, "other \t")
	if got, err := bucket(t).Get(t.Context(), name); err != nil || string(got.Data) != "other \t" || got.Token != 0 {
		t.Errorf("%+v, %v; want the whole object", got, err)
	}
}
