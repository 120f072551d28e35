package s3lock_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/s3lock"
)

// A holder that stalls between its check and its write loses its lock, and is refused by the
// bucket.
func TestGuardedObject(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	bucket, err := s3lock.NewBucket(client(t), servers.S3Bucket, prefix+"/")
	if err != nil {
		t.Fatal(err)
	}
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
		return holdfast.Open(ctx, under(t, shared.URL(), prefix), nil)
	})
	defer locks.Close()
	conditionaltest.Guarded(t, bucket, locks, prefix)
}

// An ETag is a digest of the data, but each write makes another version. So a stalled write is
// refused although the next holder has only read, or has written the data of before.
func TestGuardedObjectWithTheSameData(t *testing.T) {
	t.Parallel()
	bucket, err := s3lock.NewBucket(client(t), servers.S3Bucket, "")
	if err != nil {
		t.Fatal(err)
	}
	conditionaltest.SameData(t, bucket)
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
