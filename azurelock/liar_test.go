package azurelock_test

import (
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

// A liar is a service that accepts the conditions of writes and ignores some of them, as an
// emulator may.
type liar struct {
	conditionaltest.Lies

	torn bool // serves the checksum of other data
	weak bool // serves weak ETags

	strict bool // refuses an expected ETag that does not look like one of Azure

	answer func(w http.ResponseWriter, r *http.Request) bool // before all else; true if it has answered

	mu     sync.Mutex
	blobs  map[string]blob
	writes int
}

type blob struct{ text, tag, sum string }

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answer != nil && l.answer(w, r) {
		return
	}
	old, found := l.blobs[r.URL.Path]
	if r.Method == http.MethodGet {
		if !found {
			refuse(w, http.StatusNotFound, "BlobNotFound")
			return
		}
		w.Header().Set("ETag", old.tag)
		if l.weak {
			w.Header().Set("ETag", "W/"+old.tag)
		}
		w.Header().Set("Content-MD5", old.sum)
		if l.torn {
			w.Header().Set("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")
		}
		fmt.Fprint(w, old.text)
		return
	}
	expected, create := r.Header.Get("If-Match"), r.Header.Get("If-None-Match") == "*"
	writes := l.Writes(create, found, expected == old.tag)
	switch {
	case expected != "" && l.strict && !form.MatchString(expected):
		refuse(w, http.StatusBadRequest, "InvalidHeaderValue")
		return
	case !writes && create:
		refuse(w, http.StatusConflict, "BlobAlreadyExists")
		return
	case !writes:
		refuse(w, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	l.writes++
	now := blob{string(text), fmt.Sprintf(`"0x%015X"`, l.writes), r.Header.Get("Content-MD5")}
	l.blobs[r.URL.Path] = now
	w.Header().Set("ETag", now.tag)
	w.WriteHeader(http.StatusCreated)
}

var form = regexp.MustCompile(`^"0x[0-9A-F]{15}"$`)

func refuse(w http.ResponseWriter, status int, code string) {
	if code != "" {
		w.Header().Set("x-ms-error-code", code)
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>as the test says\nRequestId:1\nTime:2</Message></Error>", code)
}

// moonlight is the key of the accounts of liars.
const moonlight = "bW9vbmxpZ2h0"

// start returns the URL of a container of the liar.
func (l *liar) start(t testing.TB) string {
	t.Helper()
	l.blobs = make(map[string]blob)
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	return "azblob://account/container?endpoint=" + s.URL + "/account&credentials=" + file(t, "AccountName=account;AccountKey="+moonlight)
}

// file returns a file with a connection string.
func file(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestOpenRefusesContainersThatIgnoreConditions(t *testing.T) {
	t.Parallel()
	conditionaltest.Refused(t, "an object", func(lies conditionaltest.Lies) string { return (&liar{Lies: lies}).start(t) })
	opened(t, (&liar{strict: true}).start(t))
}
