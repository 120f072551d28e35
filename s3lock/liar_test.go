package s3lock_test

import (
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

// A liar is a service that accepts the conditions of writes and ignores some of them, as some
// services do.
type liar struct {
	creates  bool // an object that is there
	replaces bool // an object of another version
	revives  bool // an object that is not there, though a version is expected

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
	switch {
	case expected != "" && l.strict && !digest.MatchString(expected):
		refuse(w, http.StatusBadRequest, "InvalidArgument")
		return
	case r.Header.Get("If-None-Match") == "*" && found && !l.creates:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	case expected != "" && !found && !l.revives:
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	case expected != "" && found && expected != tag(old) && !l.replaces:
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
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as the test says</Message></Error>", code)
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
	const created, replaced, revived = "created an object that was there", "replaced an object that had another version", "replaced an object that was not there"
	for _, l := range []*liar{
		{creates: true, replaces: true, revives: true},
		{creates: true},
		{replaces: true},
		{revives: true},
		{strict: true},
		{},
	} {
		at := l.start(t)
		for range 2 { // The second time, the objects of the first are there.
			s, err := driver.Open(t.Context(), at)
			if err == nil {
				s.Close()
			}
			lies := l.creates || l.replaces || l.revives
			if lies != errors.Is(err, driver.ErrInvalid) || !lies && err != nil {
				t.Errorf("%+v: %v", l, err)
			}
			for text, broken := range map[string]bool{created: l.creates, replaced: l.replaces, revived: l.revives} {
				if err != nil && broken != strings.Contains(err.Error(), text) {
					t.Errorf("the bucket breaks %q: %v, and Open returned %v", text, broken, err)
				}
			}
		}
	}
}
