package s3lock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/s3lock"
)

func TestOpenWrongURL(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"s3:", "s3:bucket", "s3://", "s3://bucket#a", "s3://bucket:9000/a", "s3://user:moonlight@bucket", "s3://bucket?perfix=a",
		"s3://bucket?look=1ms", "s3://bucket?endpoint=h:9000", "s3://bucket?endpoint=http://user:moonlight@h", "s3://bucket?path_style=maybe",
		"s3://bucket/a//b?region=a", "s3://bucket/../b?region=a", "s3://bucket/a%01?region=a",
	} {
		_, err := driver.Open(t.Context(), at)
		if !errors.Is(err, driver.ErrURL) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("%s: %v, want a wrong store URL, without the password", at, err)
		}
	}
}

func TestNewRefusesOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []s3lock.Options{{Prefix: "locks"}, {Prefix: "/locks/"}, {Prefix: "a//b/"}, {Look: -1}, {Look: time.Millisecond}} {
		if _, err := s3lock.New(client(t), "bucket", &o); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", o, err)
		}
	}
	if _, err := s3lock.New(client(t), "", nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("no bucket: %v, want ErrInvalid", err)
	}
}

// A missing bucket, wrong keys and a dead server are told by name.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	liar := (&liar{}).start(t)
	_, keys, _ := strings.Cut(liar, "&credentials=")
	for at, want := range map[string]string{
		strings.Replace(shared.URL(), "s3://locks", "s3://none", 1):                 "NoSuchBucket",
		"s3://locks?endpoint=http://" + shared.Addr() + "&credentials=" + keys:      "404 XAdminUserNotFound",
		"s3://locks?endpoint=http://127.0.0.1:1&credentials=" + keys:                "127.0.0.1:1: dial tcp",
		"s3://locks?endpoint=http://127.0.0.1:1&credentials=" + keys + "&profile=b": "shared config profile, b",
	} {
		_, err := conditionaltest.Open(t, at)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
	}
}

// The answer of a service that refuses to give credentials is not the answer of the bucket.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	refuses := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		answer := &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusPreconditionFailed}}
		return aws.Credentials{}, &smithy.OperationError{
			ServiceID: "STS", OperationName: "AssumeRole", Err: &smithyhttp.ResponseError{Response: answer, Err: errors.New("no role")},
		}
	})
	s, err := s3lock.New(s3.New(clientOf(t, (&liar{}).start(t)).Options(), func(o *s3.Options) { o.Credentials = refuses }), "bucket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Acquire(t.Context(), ask("key", "id")); !errors.Is(err, driver.ErrUnwritten) || errors.Is(err, caslock.ErrConflict) || !strings.Contains(err.Error(), "there are no credentials") {
		t.Errorf("Acquire returned %v, want that there are no credentials", err)
	}
}

// A Store that New has made tests the bucket before its first lock.
func TestNewProvesTheBucketBeforeTheFirstLock(t *testing.T) {
	t.Parallel()
	l := &liar{}
	at := l.start(t)
	s := opened(t, at) // proves a bucket that lies from now on
	l.mu.Lock()
	l.Replaces = true
	l.mu.Unlock()
	if g, err := s.Acquire(t.Context(), ask("key", "id")); err != nil || !g.OK {
		t.Fatalf("%+v, %v", g, err)
	}
	fresh, err := s3lock.New(clientOf(t, at), "bucket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if _, err := fresh.Acquire(t.Context(), ask("other", "id")); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Acquire returned %v, want ErrInvalid", err)
	}
	if _, err := fresh.Check(t.Context()); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Check returned %v, want ErrInvalid", err)
	}
}

// TestAnswers has a service give each answer to a write once, and expects the next attempt to
// succeed. The outcome of the write is unknown unless the service has certainly refused it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	conditionaltest.Answers(t, "s3://bucket/holdfast/key", []conditionaltest.Answer{
		{Status: http.StatusPreconditionFailed, Code: "PreconditionFailed", Want: conditionaltest.ErrDone},
		{Status: http.StatusConflict, Code: "ConditionalRequestConflict", Want: conditionaltest.ErrDone},
		{Status: http.StatusNotFound, Code: "NoSuchKey", Want: conditionaltest.ErrDone},
		{Status: http.StatusNotFound, Code: "NoSuchBucket", Want: driver.ErrUnwritten},
		{Status: http.StatusNotFound, Code: "XAdminUserNotFound", Want: driver.ErrUnwritten},
		{Status: http.StatusConflict, Code: "InvalidBucketState", Want: driver.ErrUnwritten},
		{Status: http.StatusForbidden, Code: "AccessDenied", Want: driver.ErrUnwritten},
		{Status: http.StatusBadRequest, Code: "ExpiredToken", Want: driver.ErrUnwritten},
		{Status: http.StatusMovedPermanently, Code: "PermanentRedirect", Want: driver.ErrUnwritten},
		{Status: http.StatusRequestEntityTooLarge, Code: "EntityTooLarge", Want: driver.ErrInvalid},
		{Status: http.StatusNotImplemented, Code: "NotImplemented", Want: driver.ErrInvalid},
		{Status: http.StatusRequestTimeout, Code: "RequestTimeout", Want: nil},
		{Status: http.StatusBadRequest, Code: "RequestTimeout", Want: nil},
		{Status: http.StatusBadRequest, Code: "", Want: nil},
		{Status: http.StatusInternalServerError, Code: "InternalError", Want: nil},
		{Status: http.StatusServiceUnavailable, Code: "SlowDown", Want: nil},
	}, func(t *testing.T, a conditionaltest.Answer, tries *atomic.Int32) driver.Store {
		l := &liar{}
		s := opened(t, l.start(t))
		l.mu.Lock()
		defer l.mu.Unlock()
		l.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || tries.Add(1) > 1 {
				return false
			}
			refuse(w, a.Status, a.Code)
			return true
		}
		return s
	})
}

// A write whose answer is lost may have been carried out: the next call finds it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	l := &liar{}
	s := opened(t, l.start(t))
	writes := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.writes
	}
	conditionaltest.Lost(t, s, writes, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		lost := false
		l.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || lost {
				return false
			}
			lost = true
			l.answer = nil
			l.mu.Unlock()
			l.ServeHTTP(discard{http.Header{}}, r)
			l.mu.Lock()
			panic(http.ErrAbortHandler)
		}
	})
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// A service that stores the ETag apart from the data may serve the ETag of a later write. The
// checksum shows that.
func TestTornRead(t *testing.T) {
	t.Parallel()
	l := &liar{}
	at := l.start(t)
	if g, err := opened(t, at).Acquire(t.Context(), ask("key", "id")); err != nil || !g.OK {
		t.Fatalf("%+v, %v", g, err)
	}
	l.mu.Lock()
	l.torn = true
	l.mu.Unlock()
	if g, err := opened(t, at).Acquire(t.Context(), ask("key", "other")); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("%+v, %v; want an error about the checksum", g, err)
	}
}

// A weak ETag comes from a proxy, and matches no condition.
func TestWeakETag(t *testing.T) {
	t.Parallel()
	l := &liar{}
	at := l.start(t)
	granted(t, opened(t, at), ask("key", "id"))
	l.mu.Lock()
	l.weak = true
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if g, err := opened(t, at).Acquire(ctx, ask("key", "other")); err == nil || !strings.Contains(err.Error(), "weak") || ctx.Err() != nil {
		t.Errorf("%+v, %v; want an error about the weak ETag", g, err)
	}
}
