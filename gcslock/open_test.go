package gcslock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/gcslock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func TestOpenWrongURL(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"gs:", "gs:bucket", "gs://", "gs://bucket#a", "gs://bucket:9000/a", "gs://user:moonlight@bucket", "gs://bucket?perfix=a",
		"gs://bucket?look=1ms", "gs://bucket?endpoint=h:9000", "gs://bucket?endpoint=http://user:moonlight@h",
		"gs://bucket/a//b", "gs://bucket/../b", "gs://bucket/a%01", "gs://Bucket",
	} {
		_, err := driver.Open(t.Context(), at)
		if !errors.Is(err, driver.ErrURL) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("%s: %v, want a wrong store URL, without the password", at, err)
		}
	}
}

func TestNewRefusesOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []gcslock.Options{{Prefix: "locks"}, {Prefix: "/locks/"}, {Prefix: "a//b/"}, {Look: -1}, {Look: time.Millisecond}, {Endpoint: "h"}} {
		if _, err := gcslock.New(http.DefaultClient, "bucket", &o); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", o, err)
		}
	}
	if _, err := gcslock.New(http.DefaultClient, "", nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("no bucket: %v, want ErrInvalid", err)
	}
}

// A missing bucket and a dead server are told by name.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		strings.Replace(shared.URL(), "gs://locks", "gs://none", 1): "404 notFound",
		"gs://locks?endpoint=http://127.0.0.1:1":                    "127.0.0.1:1: dial tcp",
	} {
		_, err := conditionaltest.Open(t, at)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
	}
}

// Every Google client looks for an emulator in this variable, and sends no credentials there.
func TestEmulator(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", shared.Addr())
	granted(t, opened(t, "gs://locks/emulator"), ask("key", "id"))
}

// The file of the credentials is that of the environment, and its content is in no error.
func TestNoCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none")
	_, err := driver.Open(t.Context(), "gs://bucket")
	if err == nil || !strings.Contains(err.Error(), "there are no credentials") {
		t.Errorf("Open returned %v, want that there are no credentials", err)
	}
}

// An endpoint without TLS gets no credentials, however its scheme is written. So none are missing.
func TestNoCredentialsWithoutTLS(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none")
	l := &liar{}
	granted(t, opened(t, strings.Replace(l.start(t), "endpoint=http", "endpoint=HTTP", 1)), ask("key", "id"))
}

type source func() (*oauth2.Token, error)

func (s source) Token() (*oauth2.Token, error) { return s() }

// The answer of a service that refuses to give a token is not the answer of the bucket, and its
// text is in no error. A source that hangs delays nobody.
func TestTokens(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]func(end <-chan struct{}) (*oauth2.Token, error){
		"refused": func(<-chan struct{}) (*oauth2.Token, error) {
			return nil, &oauth2.RetrieveError{Response: &http.Response{StatusCode: http.StatusPreconditionFailed, Status: "412"}, Body: []byte("moonlight")}
		},
		"limited": func(<-chan struct{}) (*oauth2.Token, error) {
			return nil, &oauth2.RetrieveError{Response: &http.Response{StatusCode: http.StatusTooManyRequests, Status: "429"}}
		},
		"silent": func(end <-chan struct{}) (*oauth2.Token, error) {
			<-end
			return nil, errors.New("late")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			end := make(chan struct{})
			defer close(end)
			l := &liar{}
			client := l.near()
			client.Transport = &oauth2.Transport{Source: source(func() (*oauth2.Token, error) { return token(end) }), Base: client.Transport}
			s := must.Get(gcslock.New(client, "bucket", &gcslock.Options{Endpoint: "http://liar"}))
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			_, err := s.Acquire(ctx, ask("key", "id"))
			if err == nil || !errors.Is(err, driver.ErrUnwritten) || errors.Is(err, caslock.ErrConflict) || strings.Contains(err.Error(), "moonlight") {
				t.Errorf("%s: Acquire returned %v, want ErrUnwritten", name, err)
			}
			if name == "refused" && !strings.Contains(err.Error(), "there are no credentials: 412") {
				t.Errorf("Acquire returned %v, want that there are no credentials", err)
			}
			if took, late := time.Since(began), name == "silent"; late != (took == time.Minute) || !late && took > 0 {
				t.Errorf("%s: Acquire returned after %v", name, took)
			}
		})
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
	granted(t, s, ask("key", "id"))
	if _, err := conditionaltest.Open(t, at); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Open returned %v, want ErrInvalid", err)
	}
}

// TestAnswers has a service give each answer to a write once, and expects the next attempt to
// succeed. The outcome of the write is unknown unless the service has certainly refused it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	conditionaltest.Answers(t, "gs://bucket/holdfast/key", []conditionaltest.Answer{
		{Status: http.StatusPreconditionFailed, Code: "conditionNotMet", Want: conditionaltest.ErrDone},
		{Status: http.StatusTooManyRequests, Code: "rateLimitExceeded", Want: conditionaltest.ErrDone},
		{Status: http.StatusPreconditionFailed, Code: "", Want: conditionaltest.ErrDone},
		{Status: http.StatusPreconditionFailed, Code: "orgPolicyConstraintFailed", Want: driver.ErrUnwritten},
		{Status: http.StatusNotFound, Code: "notFound", Want: driver.ErrUnwritten},
		{Status: http.StatusForbidden, Code: "forbidden", Want: driver.ErrUnwritten},
		{Status: http.StatusUnauthorized, Code: "authError", Want: driver.ErrUnwritten},
		{Status: http.StatusBadRequest, Code: "invalid", Want: driver.ErrUnwritten},
		{Status: http.StatusTemporaryRedirect, Code: "", Want: driver.ErrUnwritten},
		{Status: http.StatusRequestEntityTooLarge, Code: "uploadTooLarge", Want: driver.ErrInvalid},
		{Status: http.StatusNotImplemented, Code: "notImplemented", Want: driver.ErrInvalid},
		{Status: http.StatusBadRequest, Code: "", Want: nil},
		{Status: http.StatusRequestTimeout, Code: "", Want: nil},
		{Status: http.StatusConflict, Code: "conflict", Want: nil},
		{Status: http.StatusInternalServerError, Code: "internalError", Want: nil},
		{Status: http.StatusServiceUnavailable, Code: "backendError", Want: nil},
	}, func(t *testing.T, a conditionaltest.Answer, tries *atomic.Int32) driver.Store {
		l := &liar{}
		s := opened(t, l.start(t))
		l.mu.Lock()
		defer l.mu.Unlock()
		l.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || tries.Add(1) > 1 {
				return false
			}
			refuse(w, a.Status, a.Code)
			return true
		}
		return s
	})
}

// A write that the service refuses until the call ends was not carried out.
func TestThrottledUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &liar{}
		s := must.Get(gcslock.New(l.near(), "bucket", &gcslock.Options{Endpoint: "http://liar"}))
		defer s.Close()
		granted(t, s, ask("held", "id"))
		refusals := 0
		l.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				refusals++
				refuse(w, http.StatusTooManyRequests, "rateLimitExceeded")
			}
			return r.Method == http.MethodPost
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if g, err := s.Acquire(ctx, ask("key", "id")); err != nil || g.OK || g.Blocked == nil || !strings.Contains(g.Blocked.Error(), "one write a second") {
			t.Errorf("Acquire returned %+v, %v; want a refusal with the limit", g, err)
		}
		acquires := refusals
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := renew(ctx, s, ask("held", "id")); !errors.Is(err, driver.ErrUnwritten) {
			t.Errorf("Renew returned %v, want ErrUnwritten", err)
		}
		// The store sends a refused write again after a quarter to half of a second.
		if renewals := refusals - acquires; acquires < 3 || acquires > 4 || renewals < 3 || renewals > 4 {
			t.Errorf("within a second each, the acquire was refused %d times, and the renewal %d times", acquires, renewals)
		}
		// A call without the time for another try learns so before its end.
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if g, err := s.Acquire(short, ask("short", "id")); err != nil || g.Blocked == nil || short.Err() != nil {
			t.Errorf("a short Acquire returned %+v, %v, %v; want a refusal with the limit in time", g, err, short.Err())
		}
		if err := renew(short, s, ask("held", "id")); !errors.Is(err, driver.ErrUnwritten) || short.Err() != nil || !strings.Contains(err.Error(), "one write a second") {
			t.Errorf("a short Renew returned %v, %v; want an error with the limit in time", err, short.Err())
		}
	})
}

// Worth 10 s: four processes take turns under the limit of one write a second.
func TestOneWriteASecond(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes 15 s: make prove")
	}
	l := &liar{}
	at := l.start(t)
	l.mu.Lock()
	l.limited = true
	l.mu.Unlock()
	var holders, turns atomic.Int32
	var last atomic.Uint64
	var all sync.WaitGroup
	began := time.Now()
	for range 4 {
		all.Go(func() {
			locks, err := servers.Answer(t.Context(), func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, at, nil) })
			if err != nil {
				t.Error(err)
				return
			}
			defer locks.Close()
			for range 2 {
				lock, err := servers.Patient(t.Context(), locks.Lock, "key", holdfast.TTL(time.Minute))
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 || last.Swap(lock.Fence()) >= lock.Fence() {
					t.Errorf("token %d beside another holder, or after a later token", lock.Fence())
				}
				holders.Add(-1)
				turns.Add(1)
				if err := lock.Unlock(); err != nil {
					t.Logf("released in the background: %v", err)
				}
			}
		})
	}
	all.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%d turns in %v: %d writes, and %d refused with 429", turns.Load(), time.Since(began).Round(time.Second), l.writes, l.throttled)
	if turns.Load() != 8 || l.throttled == 0 {
		t.Errorf("%d turns and %d refusals", turns.Load(), l.throttled)
	}
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
			if r.Method != http.MethodPost || lost {
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

// Data that do not match the checksum are read again, and are no record.
func TestTornRead(t *testing.T) {
	t.Parallel()
	l := &liar{}
	at := l.start(t)
	granted(t, opened(t, at), ask("key", "id"))
	for torn, want := range map[int]string{2: "", 1000: "checksum"} {
		l.mu.Lock()
		l.torn = torn
		l.mu.Unlock()
		g, err := opened(t, at).Acquire(t.Context(), ask("key", "other"))
		if g.OK || (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d times: %+v, %v; want %q", torn, g, err, want)
		}
	}
}
