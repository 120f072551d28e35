package azurelock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/azurelock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func TestOpenWrongURL(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"azblob:", "azblob:account", "azblob://", "azblob://account", "azblob://account/", "azblob://account/container#a",
		"azblob://account:9000/container", "azblob://account.blob.core.windows.net/container", "azblob://account/Container",
		"azblob://user:moonlight@account/container", "azblob://account/container?perfix=a", "azblob://account/container?sig=moonlight",
		"azblob://account/container?look=1ms", "azblob://account/container?endpoint=h:9000",
		"azblob://account/container?endpoint=http://user:moonlight@h", "azblob://account/container?endpoint=http://h/?sig=moonlight",
		"azblob://account/container/a//b", "azblob://account/container/../b", "azblob://account/container/a%01",
	} {
		_, err := driver.Open(t.Context(), at)
		if !errors.Is(err, driver.ErrURL) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("%s: %v, want a wrong store URL, without the password", at, err)
		}
	}
}

func TestNewRefusesOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []azurelock.Options{{Prefix: "locks"}, {Prefix: "/locks/"}, {Prefix: "a//b/"}, {Look: -1}, {Look: time.Millisecond}} {
		if _, err := azurelock.New(container(), &o); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", o, err)
		}
	}
}

func TestNewRefusesContainers(t *testing.T) {
	t.Parallel()
	for _, c := range []azurelock.Container{
		{}, {URL: "https://h"}, {URL: "https://h/"}, {URL: "ftp://h/c"}, {URL: "https://user:" + moonlight + "@h/c"}, {URL: "https://h/c/?sig=" + moonlight},
		{URL: "https://h/c\n?sig=" + moonlight}, {URL: "https://h/c", Key: moonlight + "!"}, {URL: "https://h/c?sig=" + moonlight, Key: moonlight},
		{URL: "https://h/c", Key: moonlight, Credential: noToken{}}, {URL: "http://h/c", Credential: noToken{}},
	} {
		_, err := azurelock.New(&c, nil)
		if !errors.Is(err, driver.ErrInvalid) || strings.Contains(err.Error(), moonlight) {
			t.Errorf("%+v: %v, want ErrInvalid, without the key", c, err)
		}
	}
}

// A missing container, a wrong key and a dead server are told by name.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	wrong := file(t, "AccountName="+servers.AzureAccount+";AccountKey="+moonlight)
	const at = "azblob://holdfast/locks?endpoint="
	for at, want := range map[string]string{
		strings.Replace(shared.URL(), "/locks?", "/none?", 1):                                     "404 ContainerNotFound",
		at + shared.Endpoint() + "&credentials=" + wrong:                                          "403 AuthorizationFailure",
		at + "http://127.0.0.1:1/holdfast&credentials=" + wrong:                                   "127.0.0.1:1: dial tcp",
		at + "http://h&credentials=/nowhere":                                                      "/nowhere",
		at + "http://h&credentials=" + file(t, "AccountName=other;AccountKey="+moonlight):         "is for the account other",
		at + "http://h&credentials=" + file(t, "AccountName=holdfast"):                            "neither AccountKey nor",
		at + "http://h&credentials=" + file(t, moonlight[:len(moonlight)-1]):                      "is no connection string",
		at + "http://127.0.0.1:1&credentials=" + file(t, "SharedAccessSignature=?sig="+moonlight): "127.0.0.1:1: dial tcp",
	} {
		_, err := conditionaltest.Open(t, at)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), moonlight[:len(moonlight)-1]) {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
	}
}

// A Store that New has made tests the container before its first lock.
func TestNewProvesTheContainerBeforeTheFirstLock(t *testing.T) {
	t.Parallel()
	l := &liar{}
	at := l.start(t)
	s := opened(t, at) // proves a container that lies from now on
	l.mu.Lock()
	l.Replaces = true
	l.mu.Unlock()
	if g, err := s.Acquire(t.Context(), ask("key", "id")); err != nil || !g.OK {
		t.Fatalf("%+v, %v", g, err)
	}
	_, endpoint, _ := strings.Cut(at, "endpoint=")
	endpoint, _, _ = strings.Cut(endpoint, "&")
	fresh, err := azurelock.New(&azurelock.Container{URL: endpoint + "/container", Account: "account", Key: moonlight}, nil)
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
	conditionaltest.Answers(t, "azblob://account/container/holdfast/key", []conditionaltest.Answer{
		{Status: http.StatusPreconditionFailed, Code: "ConditionNotMet", Want: conditionaltest.ErrDone},
		{Status: http.StatusPreconditionFailed, Code: "", Want: conditionaltest.ErrDone},
		{Status: http.StatusPreconditionFailed, Code: "LeaseIdMissing", Want: driver.ErrUnwritten},
		{Status: http.StatusConflict, Code: "BlobAlreadyExists", Want: conditionaltest.ErrDone},
		{Status: http.StatusConflict, Code: "ContainerBeingDeleted", Want: driver.ErrUnwritten},
		{Status: http.StatusConflict, Code: "BlobImmutableDueToPolicy", Want: driver.ErrUnwritten},
		{Status: http.StatusNotFound, Code: "BlobNotFound", Want: conditionaltest.ErrDone},
		{Status: http.StatusNotFound, Code: "ContainerNotFound", Want: driver.ErrUnwritten},
		{Status: http.StatusForbidden, Code: "AuthorizationPermissionMismatch", Want: driver.ErrUnwritten},
		{Status: http.StatusUnauthorized, Code: "NoAuthenticationInformation", Want: driver.ErrUnwritten},
		{Status: http.StatusBadRequest, Code: "Md5Mismatch", Want: driver.ErrUnwritten},
		{Status: http.StatusTemporaryRedirect, Code: "", Want: driver.ErrUnwritten},
		{Status: http.StatusRequestEntityTooLarge, Code: "RequestBodyTooLarge", Want: driver.ErrInvalid},
		{Status: http.StatusNotImplemented, Code: "NotImplemented", Want: driver.ErrInvalid},
		{Status: http.StatusRequestTimeout, Code: "", Want: nil},
		{Status: http.StatusBadRequest, Code: "", Want: nil},
		{Status: http.StatusConflict, Code: "", Want: nil},
		{Status: http.StatusInternalServerError, Code: "OperationTimedOut", Want: nil},
		{Status: http.StatusServiceUnavailable, Code: "ServerBusy", Want: nil},
		{Status: http.StatusTooManyRequests, Code: "", Want: nil},
	}, func(t *testing.T, a conditionaltest.Answer, tries *atomic.Int32) driver.Store {
		l := &liar{}
		s := opened(t, l.start(t))
		l.mu.Lock()
		defer l.mu.Unlock()
		l.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || tries.Add(1) > 1 {
				return false
			}
			w.Header().Set("Location", "/elsewhere")
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
