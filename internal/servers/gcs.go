package servers

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// fakeGCSVersion is the release that scripts/servers installs.
const fakeGCSVersion = "v1.56.0"

// GCSBucket is the bucket of a [GCS].
const GCSBucket = "locks"

// A GCS is an emulator of Google Cloud Storage with a bucket: fake-gcs-server, over a folder
// unless an option says otherwise. Clients reach the emulator through a front, which counts the
// requests.
//
// Data in a folder survive a kill. The emulator writes the data of an object and its generation
// in two steps, so a kill between the steps would lose the object, as no kill of a server of
// Google does. So a kill waits at the front for the uploads under way.
type GCS struct {
	*Process
	TLS *Certificates // of a front that speaks HTTPS only, otherwise nil

	port     int
	front    string // address
	proxy    httputil.ReverseProxy
	requests atomic.Int64
	uploads  sync.RWMutex // held for reading by uploads, and for writing by a kill
}

// StartGCS starts an emulator. Options are further arguments, such as -backend=memory.
func StartGCS(tb TB, options ...string) *GCS {
	tb.Helper()
	return new(GCS).start(tb, options)
}

// StartGCSTLS is StartGCS with a front that speaks HTTPS only.
func StartGCSTLS(tb TB, options ...string) *GCS {
	tb.Helper()
	s := &GCS{TLS: newCertificates(tb)}
	return s.start(tb, options)
}

func (s *GCS) start(tb TB, options []string) *GCS {
	tb.Helper()
	// The emulator may send more than it has announced, if an object changes meanwhile. So a
	// connection has one answer.
	s.proxy = httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: address(s.port)}) },
		Transport:    &http.Transport{DisableKeepAlives: true},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(quiet{}, "", 0),
	}
	path := chosen(tb, "HOLDFAST_FAKE_GCS", "none, but run go install github.com/fsouza/fake-gcs-server@"+fakeGCSVersion, "fake-gcs-server")
	l := occupy(tb)
	s.front = l.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(s.forward), ErrorLog: log.New(quiet{}, "", 0)}
	var serving sync.WaitGroup
	serving.Go(func() {
		if s.TLS == nil {
			server.Serve(l)
		} else {
			server.ServeTLS(l, s.TLS.Cert, s.TLS.Key)
		}
	})
	tb.Cleanup(func() {
		server.Close()
		serving.Wait()
	})
	s.Process = start(tb, program{
		name:     "fake-gcs-server",
		volatile: true, // The emulator waits for the disk in each write.
		path:     path,
		setup: func(tb TB, dir string) ([]string, error) {
			s.port = reserve(tb)
			return append([]string{
				"-scheme=http", "-host=" + loopback, "-port=" + strconv.Itoa(s.port), "-public-host=" + loopback,
				"-filesystem-root=" + filepath.Join(dir, "data"), "-log-level=error",
			}, options...), nil
		},
		ready: func(int) error { return s.ready() },
		whole: func() func() {
			s.uploads.Lock()
			return s.uploads.Unlock
		},
	})
	return s
}

type quiet struct{}

func (quiet) Write(b []byte) (int, error) { return len(b), nil }

// forward sends a request on to the emulator. If the emulator does not answer, the client loses
// its connection, as if there were no front.
func (s *GCS) forward(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	if strings.HasPrefix(r.URL.Path, "/upload/") {
		s.uploads.RLock()
		defer s.uploads.RUnlock()
		r = r.WithContext(context.WithoutCancel(r.Context())) // An upload goes on without its client.
	}
	s.proxy.ServeHTTP(w, r)
}

// ready makes the bucket, and returns nil once the emulator has the bucket.
func (s *GCS) ready() error {
	client := http.Client{Timeout: glance}
	answer, err := client.Post("http://"+address(s.port)+"/storage/v1/b?project=test", "application/json", strings.NewReader(`{"name":"`+GCSBucket+`"}`))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusConflict {
		return errors.New(answer.Status)
	}
	return nil
}

// Addr returns the host and port of the front.
func (s *GCS) Addr() string { return s.front }

// URL returns the bucket as gs://locks, with the endpoint.
func (s *GCS) URL() string { return s.Through(s.Addr()) }

// Through returns the URL of the bucket for clients that reach the front at another address.
func (s *GCS) Through(addr string) string {
	return fmt.Sprintf("gs://%s?endpoint=%s", GCSBucket, url.QueryEscape(s.TLS.scheme()+addr))
}

// Requests returns the number of requests so far.
func (s *GCS) Requests() int { return int(s.requests.Load()) }

// Version returns the name and the version of the emulator.
func (s *GCS) Version() string { return "fake-gcs-server " + strings.TrimPrefix(fakeGCSVersion, "v") }
