package s3lock_test

import (
	"crypto/md5"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
)

// A liar is a service that accepts the conditions of writes and ignores some of them, as some
// services do.
type liar struct {
	conditionaltest.Lies

	torn bool // serves the checksum of other data
	weak bool // serves weak ETags

	strict bool // refuses an expected ETag that is no digest

	answer func(w http.ResponseWriter, r *http.Request) bool // before all else; true if it has answered

	mu      sync.Mutex
	objects map[string]string
	writes  int
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answer != nil && l.answer(w, r) {
		return
	}
	old, found := l.objects[r.URL.Path]
	if r.Method == http.MethodGet {
		if !found {
			refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", tag(old))
		if l.weak {
			w.Header().Set("ETag", "W/"+tag(old))
		}
		if l.torn {
			w.Header().Set("X-Amz-Checksum-Crc32", "AAAAAA==")
		}
		fmt.Fprint(w, old)
		return
	}
	expected := r.Header.Get("If-Match")
	writes := l.Writes(r.Header.Get("If-None-Match") == "*", found, expected == tag(old))
	switch {
	case expected != "" && l.strict && !digest.MatchString(expected):
		refuse(w, http.StatusBadRequest, "InvalidArgument")
		return
	case !writes && !found:
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	case !writes:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	l.objects[r.URL.Path] = string(text)
	l.writes++
	w.Header().Set("ETag", tag(string(text)))
}

var digest = regexp.MustCompile(`^"[0-9a-f]{32}"$`)

func tag(text string) string { return fmt.Sprintf("%q", fmt.Sprintf("%x", md5.Sum([]byte(text)))) }

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as the test says\nx-amz-security-token:moonlight</Message></Error>", code)
}

// start returns the URL of a bucket of the liar.
func (l *liar) start(t testing.TB) string {
	t.Helper()
	l.objects = make(map[string]string)
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	keys := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(keys, []byte("[default]\naws_access_key_id = a\naws_secret_access_key = moonlight\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "s3://bucket?endpoint=" + s.URL + "&credentials=" + keys
}

func TestOpenRefusesBucketsThatIgnoreConditions(t *testing.T) {
	t.Parallel()
	conditionaltest.Refused(t, "an object", func(lies conditionaltest.Lies) string { return (&liar{Lies: lies}).start(t) })
	opened(t, (&liar{strict: true}).start(t))
}
