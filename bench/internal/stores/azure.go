package stores

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sharedkey"
)

func azureStore() Store {
	leases := func(pause time.Duration) opener {
		return func(at []string, ttl time.Duration) (*Library, error) { return newLeases(at, ttl, pause) }
	}
	return Store{
		Name: "azblob", Only: emulated, Title: "Azure", Cost: "requests", Waiting: 100, Polls: true,
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt, Renews: true},
			{Name: "Holdfast, look=10ms", Open: looking("10ms"), Renews: true, Patient: true},
			{Name: "a lease of a blob, 500 ms", Kind: Bare, Open: leases(500 * time.Millisecond)},
			{Name: "a lease of a blob, 5 ms", Kind: Bare, Open: leases(longPause), Patient: true},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			server := servers.StartAzurite(tb)
			return &Server{At: []string{server.URL()}, About: server.Version(), Count: func(Side) int { return server.Requests() }}
		},
	}
}

// leases are the locks that programs with a container write by hand: the lease of a blob for each
// key, which the service gives to one client for 15 to 60 seconds.
type leases struct {
	endpoint string
	key      sharedkey.Key
	client   http.Client
	ttl      time.Duration
	pause    time.Duration // between two attempts
}

func newLeases(at []string, ttl, pause time.Duration) (*Library, error) {
	u, err := url.Parse(at[0])
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(u.Query().Get("credentials"))
	if err != nil {
		return nil, err
	}
	_, secret, _ := strings.Cut(strings.TrimSpace(string(text)), "AccountKey=")
	key, err := sharedkey.New(servers.AzureAccount, secret)
	if err != nil {
		return nil, err
	}
	l := &leases{endpoint: u.Query().Get("endpoint") + u.Path + "/", key: key, ttl: ttl, pause: pause}
	l.client.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
	return &Library{l.lock, l.client.CloseIdleConnections}, nil
}

func (l *leases) lock(ctx context.Context, key string) (func() error, error) {
	name := "bare-" + url.PathEscape(key)
	var lease string
	err := poll(ctx, l.pause, func() (ok bool, err error) {
		lease, err = l.acquire(ctx, name)
		return lease != "", err
	})
	return func() error {
		status, _, err := l.send(context.Background(), name+"?comp=lease", map[string]string{"x-ms-lease-action": "release", "x-ms-lease-id": lease})
		return gone(status == http.StatusOK, err)
	}, err
}

// acquire returns the id of the lease, "" if another client has it. A blob that is missing is made.
func (l *leases) acquire(ctx context.Context, name string) (lease string, err error) {
	for {
		status, header, err := l.send(ctx, name+"?comp=lease", map[string]string{
			"x-ms-lease-action": "acquire", "x-ms-lease-duration": strconv.Itoa(int(min(max(l.ttl, 15*time.Second), time.Minute).Seconds())),
		})
		if err != nil || status != http.StatusNotFound {
			return header.Get("x-ms-lease-id"), err
		}
		if _, _, err := l.send(ctx, name, map[string]string{"x-ms-blob-type": "BlockBlob", "If-None-Match": "*"}); err != nil {
			return "", err
		}
	}
}

// send sends a PUT without a body.
func (l *leases) send(ctx context.Context, name string, header map[string]string) (status int, answer http.Header, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, l.endpoint+name, nil)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("x-ms-version", "2021-12-02")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	l.key.Authorize(r)
	got, err := l.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err == nil && got.StatusCode >= 400 && got.StatusCode != http.StatusConflict && got.StatusCode != http.StatusNotFound && got.StatusCode != http.StatusPreconditionFailed {
		err = fmt.Errorf("%s: %s", got.Status, text)
	}
	return got.StatusCode, got.Header, err
}
