package s3lock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func renew(ctx context.Context, s driver.Store, a driver.Ask) error {
	return errors.Join(s.Renew(ctx, []driver.Renewal{{Claim: a.Claim}})...)
}

func granted(t *testing.T, s driver.Store, a driver.Ask) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), a)
	if err != nil || !g.OK {
		t.Fatalf("%+v, %v; want a grant", g, err)
	}
	return g
}

// Locks stand while the server is killed, and while it is paused.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	server := servers.StartS3(t)
	s, other := opened(t, server.URL()), opened(t, server.URL())
	holder := ask("key", "holder")
	g := granted(t, s, holder)

	for name, fault := range map[string]struct{ begin, end func() }{
		"kill":  {server.Kill, server.Restart},
		"pause": {server.Pause, server.Resume},
	} {
		fault.begin()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := renew(ctx, s, holder); err == nil || errors.Is(err, driver.ErrLost) {
			t.Errorf("%s: renewed during the fault: %v", name, err)
		}
		cancel()
		fault.end()
		servers.Insist(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, renew(ctx, s, holder) })
		refusal := servers.Insist(t, func(ctx context.Context) (driver.Grant, error) { return other.Acquire(ctx, ask("key", "other")) })
		if refusal.OK || refusal.Holder.Fence != g.Fence {
			t.Errorf("%s: another process is answered %+v", name, refusal)
		}
	}
}

// An object that is deleted by hand ends the lock, and the next token is larger.
func TestObjectDeletedByHand(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	at := under(t, shared.URL(), prefix)
	s, other := opened(t, at), opened(t, at)
	holder := ask("key", "holder")
	g := granted(t, s, holder)
	if _, err := client(t).DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(servers.S3Bucket), Key: aws.String(prefix + "/key")}); err != nil {
		t.Fatal(err)
	}
	if err := renew(t.Context(), s, holder); !errors.Is(err, driver.ErrLost) {
		t.Errorf("renewed: %v, want ErrLost", err)
	}
	if next := granted(t, other, ask("key", "other")); next.Fence <= g.Fence {
		t.Errorf("token %d after %d", next.Fence, g.Fence)
	}
}

// The keys of a prefix are not those of a prefix under it.
func TestKeysOfAnotherPrefix(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	outer, inner := opened(t, under(t, shared.URL(), prefix)), opened(t, under(t, shared.URL(), prefix+"/in"))
	granted(t, outer, ask("a/b", "holder"))
	granted(t, inner, ask("c", "holder"))
	var keys []string
	for key, err := range outer.(driver.Inspector).Keys(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if len(keys) != 1 || keys[0] != "a/b" {
		t.Errorf("the keys are %q, want a/b alone", keys)
	}
}
