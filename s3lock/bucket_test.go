package s3lock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/s3lock"
)

// A stalling bucket does something else before its next write.
type stalling struct {
	fence.Bucket
	before func()
}

func (s *stalling) Put(ctx context.Context, name, version string, data []byte, token uint64) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Bucket.Put(ctx, name, version, data, token)
}

// A holder that stalls between its check and its write loses its lock, and is refused by the
// bucket.
func TestGuardedObject(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	bucket, err := s3lock.NewBucket(client(t), servers.S3Bucket, prefix+"/")
	if err != nil {
		t.Fatal(err)
	}
	locks, err := holdfast.Open(t.Context(), under(t, shared.URL(), prefix), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	under := func(do func(ctx context.Context)) {
		t.Helper()
		l, err := locks.Lock(t.Context(), "state")
		if err != nil {
			t.Fatal(err)
		}
		do(l.Context(t.Context()))
		l.Unlock()
	}
	stall := &stalling{Bucket: bucket}
	object := fence.Object{Bucket: stall, Name: prefix + "/state.json"}
	under(func(ctx context.Context) {
		if data, err := object.Read(ctx); err != nil || len(data) != 0 {
			t.Fatalf("%q, %v; want no object", data, err)
		}
		if err := object.Write(ctx, []byte("first")); err != nil {
			t.Error(err)
		}
		stall.before = func() {
			// Somebody breaks the lock, and the next holder writes.
			holders, err := locks.Holders(t.Context(), "state")
			if err != nil || len(holders) != 1 {
				t.Fatalf("%+v, %v", holders, err)
			}
			if err := locks.Break(t.Context(), "state", holders[0].ID); err != nil {
				t.Fatal(err)
			}
			under(func(ctx context.Context) {
				if data, err := object.Read(ctx); err != nil || string(data) != "first" {
					t.Errorf("%q, %v; want what the earlier holder has written", data, err)
				}
				if err := object.Write(ctx, []byte("second")); err != nil {
					t.Error(err)
				}
			})
		}
		if err := object.Write(context.WithoutCancel(ctx), []byte("late")); !errors.Is(err, fence.ErrOutdated) {
			t.Errorf("a stalled write returned %v, want ErrOutdated", err)
		}
	})
	got, err := bucket.Get(t.Context(), prefix+"/state.json")
	if err != nil || string(got.Data) != "second" || got.Token == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := bucket.Put(t.Context(), prefix+"/state.json", "", nil, got.Token); !errors.Is(err, fence.ErrChanged) {
		t.Errorf("created an object that is there: %v", err)
	}
}

// An ETag is a digest of the data, but each write makes another version. So a stalled write is
// refused although the next holder has only read, or has written the data of before.
func TestGuardedObjectWithTheSameData(t *testing.T) {
	t.Parallel()
	bucket, err := s3lock.NewBucket(client(t), servers.S3Bucket, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"", "same", "{}\n \t"} {
		name := strings.ToLower(rand.Text())
		if err := bucket.Put(t.Context(), name, "", []byte(data), 33); err != nil {
			t.Fatal(err)
		}
		was, err := bucket.Get(t.Context(), name)
		if err != nil || string(was.Data) != data || was.Token != 33 {
			t.Fatalf("%+v, %v; want %q", was, err, data)
		}
		if err := bucket.Put(t.Context(), name, was.Version, []byte(data), 34); err != nil {
			t.Fatal(err)
		}
		if err := bucket.Put(t.Context(), name, was.Version, []byte("late"), 33); !errors.Is(err, fence.ErrChanged) {
			t.Errorf("a stalled write after %q returned %v, want ErrChanged", data, err)
		}
		if got, err := bucket.Get(t.Context(), name); err != nil || string(got.Data) != data || got.Token != 34 {
			t.Errorf("%+v, %v; want %q of token 34", got, err, data)
		}
	}
}

// An object that another program has written has the data as they are.
func TestObjectOfAnotherProgram(t *testing.T) {
	t.Parallel()
	bucket, err := s3lock.NewBucket(client(t), servers.S3Bucket, "")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(rand.Text())
	for _, metadata := range []map[string]string{nil, {s3lock.TokenKey: "33", s3lock.NonceKey: "12"}, {s3lock.NonceKey: ""}} {
		_, err = client(t).PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(servers.S3Bucket), Key: &name, Body: strings.NewReader("other \t"), Metadata: metadata,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := bucket.Get(t.Context(), name); err != nil || string(got.Data) != "other \t" {
			t.Errorf("%v: %+v, %v; want the whole object", metadata, got, err)
		}
	}
}

func TestMetadataThatIsNoToken(t *testing.T) {
	t.Parallel()
	bucket, err := s3lock.NewBucket(client(t), servers.S3Bucket, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client(t).PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(servers.S3Bucket), Key: aws.String("strange"), Metadata: map[string]string{s3lock.TokenKey: "-1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := bucket.Get(t.Context(), "strange"); err == nil {
		t.Errorf("%+v, want an error", got)
	}
}
