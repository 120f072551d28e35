package s3lock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/s3lock"
)

// TestRights locks as a user with the rights of docs/stores/s3.md, and as users who lack one.
func TestRights(t *testing.T) {
	t.Parallel()
	server := servers.StartS3(t, "--iam-dir", t.TempDir())
	const objects, bucket = "arn:aws:s3:::" + servers.S3Bucket + "/locks/*", "arn:aws:s3:::" + servers.S3Bucket
	rights := []struct{ action, resource string }{
		{"s3:GetObject", objects}, {"s3:PutObject", objects}, {"s3:ListBucket", bucket},
	}
	users := map[string]string{"all": server.AddUser("all")}
	var allowed []string
	allow := func(user string, but int) {
		for i, r := range rights {
			if i != but {
				allowed = append(allowed, fmt.Sprintf(`{"Effect": "Allow", "Principal": {"AWS": [%q]}, "Action": %q, "Resource": %q}`, user, r.action, r.resource))
			}
		}
	}
	allow("all", -1)
	for i, r := range rights {
		name := "no-" + strings.TrimPrefix(r.action, "s3:")
		users[name] = server.AddUser(name)
		allow(name, i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	policy := `{"Version": "2012-10-17", "Statement": [` + strings.Join(allowed, ", ") + `]}`
	_, err := clientOf(t, server.URL()).PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: aws.String(servers.S3Bucket), Policy: &policy})
	if err != nil {
		t.Fatal(err)
	}
	if err := lists(t, ctx, under(t, users["all"], "locks")); err != nil {
		t.Errorf("with all rights: %v", err)
	}
	if err := lists(t, ctx, under(t, users["all"], "elsewhere")); err == nil {
		t.Error("the policy allows another prefix")
	}
	for name, url := range users {
		if name == "all" {
			continue
		}
		if err := lists(t, ctx, under(t, url, "locks")); err == nil || !strings.Contains(err.Error(), "the store needs s3:GetObject and s3:PutObject") {
			t.Errorf("%s: got the error %v, want one that names the rights", name, err)
		}
	}
}

// TestTLS: an https endpoint has to prove its name, to an authority of the system or of the
// variable that the SDK reads.
func TestTLS(t *testing.T) {
	server := servers.StartS3TLS(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	if _, err := conditionaltest.Open(t, server.URL()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the authority: %v, want an error about the certificate", err)
	}
	t.Setenv("AWS_CA_BUNDLE", server.TLS.CA)
	if err := lists(t, ctx, server.URL()); err != nil {
		t.Error(err)
	}
}

// TestNewCredentials rotates the credentials while a lock is held: the SDK asks for new ones when the
// old ones have expired.
func TestNewCredentials(t *testing.T) {
	t.Parallel()
	server := servers.StartS3(t, "--iam-dir", t.TempDir())
	users := []string{"first", "second"}
	var provider [2]aws.CredentialsProvider
	for i, name := range users {
		provider[i] = clientOf(t, server.AddUser(name)).Options().Credentials
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	admin := clientOf(t, server.URL())
	allow := func(user string) {
		policy := fmt.Sprintf(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": [%q]}, "Action": "s3:*", "Resource": ["arn:aws:s3:::%[2]s", "arn:aws:s3:::%[2]s/*"]}]}`, user, servers.S3Bucket)
		if _, err := admin.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: aws.String(servers.S3Bucket), Policy: &policy}); err != nil {
			t.Fatal(err)
		}
	}
	var turn atomic.Int64
	rotating := aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		c, err := provider[turn.Load()].Retrieve(ctx)
		c.CanExpire, c.Expires = true, time.Now() // so that the SDK asks again
		return c, err
	})
	store, err := s3lock.New(s3.New(admin.Options(), func(o *s3.Options) { o.Credentials = aws.NewCredentialsCache(rotating) }), servers.S3Bucket, nil)
	if err != nil {
		t.Fatal(err)
	}
	locks := must.Get(holdfast.New(store, nil))
	defer locks.Close()
	allow(users[0])
	lock := must.Get(servers.Patient(ctx, locks.Lock, "key"))
	allow(users[1])
	turn.Store(1)
	if err := unlocking.Release(lock.Unlock); err != nil {
		t.Errorf("unlocked with the second credentials: %v", err)
	}
	must.Get(servers.Patient(ctx, locks.Lock, "other"))
}

// lists acquires a lock, which a second process then waits for, and lists the keys.
func lists(t *testing.T, ctx context.Context, url string) error {
	t.Helper()
	open := func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) }
	a, err := servers.Answer(ctx, open)
	if err != nil {
		return err
	}
	defer a.Close()
	b := servers.Insist(t, open)
	defer b.Close()
	held, err := servers.Answer(ctx, func(ctx context.Context) (*holdfast.Lock, error) {
		lock, err := a.TryLock(ctx, "k")
		if errors.Is(err, holdfast.ErrHeld) { // by a try without an answer, which ends in the background
			err = errors.Join(err, os.ErrDeadlineExceeded)
		}
		return lock, err
	})
	if err != nil {
		return err
	}
	for key, err := range a.Keys(ctx, "") {
		if err != nil || key != "k" {
			return errors.Join(err, unlocking.Release(held.Unlock), fmt.Errorf("the key %q is listed", key))
		}
	}
	waited := make(chan error)
	go func() {
		lock, err := servers.Patient(ctx, b.Lock, "k")
		if err == nil {
			err = unlocking.AtOnce(lock)
		}
		waited <- err
	}()
	for holders := 0; holders < 2; {
		list, err := a.Holders(ctx, "k")
		if err = errors.Join(err, rest.For(ctx, 10*time.Millisecond)); err != nil {
			return errors.Join(err, unlocking.Release(held.Unlock))
		}
		holders = len(list)
	}
	return errors.Join(unlocking.Release(held.Unlock), <-waited)
}
