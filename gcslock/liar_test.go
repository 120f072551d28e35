package gcslock_test

import (
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
)

// A liar is a service that accepts the conditions of writes and ignores some of them, as some
// emulators do.
type liar struct {
	conditionaltest.Lies

	torn    int  // how many times to serve the checksum of other data
	limited bool // one write a second to one object

	answer func(w http.ResponseWriter, r *http.Request) bool // before all else; true if it has answered

	mu        sync.Mutex
	objects   map[string]stored
	writes    int
	throttled int
}

type stored struct {
	generation int64
	written    time.Time
	text       string
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answer != nil && l.answer(w, r) {
		return
	}
	if r.Method == http.MethodGet {
		l.get(w, strings.TrimPrefix(r.URL.Path, "/bucket/"))
		return
	}
	name, text, err := parts(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid")
		return
	}
	old, found := l.objects[name]
	expected := r.URL.Query().Get("ifGenerationMatch")
	switch {
	case !l.Writes(expected == "0", found, expected == fmt.Sprint(old.generation)):
		refuse(w, http.StatusPreconditionFailed, "conditionNotMet")
		return
	case l.limited && time.Since(old.written) < time.Second:
		l.throttled++
		refuse(w, http.StatusTooManyRequests, "rateLimitExceeded")
		return
	}
	l.writes++
	l.objects[name] = stored{1e15 + int64(l.writes), time.Now(), text}
	fmt.Fprintf(w, `{"generation":"%d"}`, l.objects[name].generation)
}

func (l *liar) get(w http.ResponseWriter, name string) {
	o, found := l.objects[name]
	if !found {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>as the test says</Message></Error>")
		return
	}
	sum := crc32.Checksum([]byte(o.text), crc32.MakeTable(crc32.Castagnoli))
	if l.torn > 0 {
		l.torn--
		sum++
	}
	w.Header().Set("X-Goog-Generation", fmt.Sprint(o.generation))
	w.Header().Set("X-Goog-Hash", "crc32c="+base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))+",md5=AAAA")
	fmt.Fprint(w, o.text)
}

// parts returns the name and the data of an upload.
func parts(r *http.Request) (name, text string, err error) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return "", "", err
	}
	reader := multipart.NewReader(r.Body, params["boundary"])
	part, err := reader.NextPart()
	if err != nil {
		return "", "", err
	}
	var head struct{ Name, CacheControl string }
	if err := json.NewDecoder(part).Decode(&head); err != nil || head.CacheControl != "no-store" {
		return "", "", fmt.Errorf("%+v, %w", head, err)
	}
	if part, err = reader.NextPart(); err != nil {
		return "", "", err
	}
	data, err := io.ReadAll(part)
	return head.Name, string(data), err
}

func refuse(w http.ResponseWriter, status int, reason string) {
	w.WriteHeader(status)
	if reason != "" {
		fmt.Fprintf(w, `{"error":{"code":%d,"message":"as the test says","errors":[{"reason":%q}]}}`, status, reason)
	}
}

// direct is a liar without a network, for bubbles.
type direct struct{ *liar }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// near returns a client that reaches the liar without a network.
func (l *liar) near() *http.Client {
	l.objects = make(map[string]stored)
	return &http.Client{Transport: direct{l}}
}

// start returns the URL of a bucket of the liar.
func (l *liar) start(t testing.TB) string {
	t.Helper()
	l.objects = make(map[string]stored)
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	return "gs://bucket?look=20ms&endpoint=" + url.QueryEscape(s.URL)
}

func TestOpenRefusesBucketsThatIgnoreConditions(t *testing.T) {
	t.Parallel()
	conditionaltest.Refused(t, "an object", func(lies conditionaltest.Lies) string { return (&liar{Lies: lies}).start(t) })
}
