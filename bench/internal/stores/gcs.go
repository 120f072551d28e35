package stores

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func gcsStore() Store {
	return Store{
		Name: "gcs", Only: emulated, Title: "GCS", Cost: "requests", Waiting: 100, Polls: true,
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt, Renews: true},
			{Name: "Holdfast, look=10ms", Open: looking("10ms"), Renews: true, Patient: true},
			{Name: "a lock object, 500 ms", Kind: Bare, Open: openGCSObject(500 * time.Millisecond)},
			{Name: "a lock object, 5 ms", Kind: Bare, Open: openGCSObject(longPause), Patient: true},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			s := servers.StartGCS(tb, "-backend=memory") // In a folder, the emulator may cut the answer to a read short.
			return &Server{At: []string{s.URL()}, About: s.Version(), Count: func(Side) int { return s.Requests() }}
		},
	}
}

// openGCSObject is the lock that programs with a bucket write by hand: an object with the time
// when the lock ends. The object is created, or replaced if the time is over. The clocks of all
// clients must agree.
func openGCSObject(pause time.Duration) opener {
	return func(at []string, ttl time.Duration) (*Library, error) {
		u, err := url.Parse(at[0])
		if err != nil {
			return nil, err
		}
		o := &gcsObject{at: u.Query().Get("endpoint"), bucket: u.Host, ttl: ttl, pause: pause}
		return &Library{o.lock, func() {}}, nil
	}
}

type gcsObject struct {
	at, bucket string
	ttl        time.Duration
	pause      time.Duration // between two attempts
}

func (o *gcsObject) lock(ctx context.Context, key string) (func() error, error) {
	name := "bare-" + url.PathEscape(key)
	var version string
	err := poll(ctx, o.pause, func() (ok bool, err error) {
		version, err = o.take(ctx, name)
		return version != "", err
	})
	return func() error {
		at := o.at + "/storage/v1/b/" + o.bucket + "/o/" + url.PathEscape(name) + "?ifGenerationMatch=" + version
		status, _, err := o.do(context.Background(), http.MethodDelete, at, nil, nil)
		return gone(status < http.StatusBadRequest, err)
	}, err
}

// take returns the generation of the object that take has written, "" if the lock is held.
func (o *gcsObject) take(ctx context.Context, name string) (version string, err error) {
	var was content
	status, header, err := o.do(ctx, http.MethodGet, o.at+"/"+o.bucket+"/"+url.PathEscape(name), nil, &was)
	expected := "0"
	switch {
	case err != nil && status != http.StatusNotFound:
		return "", err
	case status == http.StatusOK && time.Now().Before(was.Ends):
		return "", nil
	case status == http.StatusOK:
		expected = header.Get("X-Goog-Generation")
	}
	text, err := json.Marshal(content{time.Now().Add(o.ttl)})
	if err != nil {
		return "", err
	}
	var made struct {
		Generation string `json:"generation"`
	}
	at := o.at + "/upload/storage/v1/b/" + o.bucket + "/o?uploadType=media&name=" + url.QueryEscape(name) + "&ifGenerationMatch=" + expected
	status, _, err = o.do(ctx, http.MethodPost, at, text, &made)
	if status == http.StatusPreconditionFailed {
		return "", nil
	}
	return made.Generation, err
}

// do sends a request, and reads the JSON of a success into answer.
func (o *gcsObject) do(ctx context.Context, method, at string, body []byte, answer any) (int, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer got.Body.Close()
	if got.StatusCode >= http.StatusBadRequest {
		return got.StatusCode, got.Header, fmt.Errorf("%s: %s", method, got.Status)
	}
	if answer != nil {
		err = json.NewDecoder(got.Body).Decode(answer)
	}
	return got.StatusCode, got.Header, err
}
