package gcslock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/oauth2"
	auth "golang.org/x/oauth2/google"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/conditional"
	"github.com/holdfast-go/holdfast/internal/hosturl"
	"github.com/holdfast-go/holdfast/internal/objects"
	"github.com/holdfast-go/holdfast/internal/silence"
)

func init() { driver.Register("gs", open) }

const (
	// openLimit is how long a service may take to answer for the first time.
	openLimit = 5 * time.Second

	// tokenLimit is how long a service may take to give a token.
	tokenLimit = 10 * time.Second
)

// open opens a bucket, and tests whether it keeps the conditions of writes.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	bucket, opts, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // like the errors of Params
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	opts.Endpoint = cmp.Or(opts.Endpoint, emulator())
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 32
	// A dead connection of HTTP/2 would fail every request until TCP gives up.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second}
	client, err := connect(limited, transport, opts.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("gs://%s: %w", bucket, silence.For(ctx, err, time.Since(began)))
	}
	s, err := New(client, bucket, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	s.close = transport.CloseIdleConnections
	if err := s.register.Check(limited); err != nil {
		return nil, errors.Join(silence.For(ctx, err, time.Since(began)), s.Close())
	}
	return s, nil
}

// emulator returns the endpoint in STORAGE_EMULATOR_HOST, where every Google client looks.
func emulator() string {
	host := os.Getenv("STORAGE_EMULATOR_HOST")
	if host != "" && !strings.Contains(host, "://") {
		host = "http://" + host
	}
	if endpoint, err := parseEndpoint(host); err == nil {
		return endpoint
	}
	return host // which New refuses
}

// connect makes a client with the credentials of the environment. Emulators get no credentials,
// and nobody gets credentials without TLS.
func connect(ctx context.Context, transport *http.Transport, endpoint string) (*http.Client, error) {
	if strings.HasPrefix(endpoint, "http://") || endpoint != "" && endpoint == emulator() {
		return &http.Client{Transport: transport}, nil
	}
	// The tokens are requested with this context, too, for as long as the store is open.
	asking := context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &http.Client{Timeout: tokenLimit})
	type result struct {
		found *auth.Credentials
		err   error
	}
	got := bounded.Within(ctx, func() *result {
		found, err := auth.FindDefaultCredentials(asking, Scope)
		return &result{found, err}
	})
	switch {
	case got == nil:
		return nil, &credentialsError{ctx.Err()}
	case got.err != nil:
		return nil, &credentialsError{got.err}
	}
	return &http.Client{Transport: &oauth2.Transport{Source: tokens{got.found.TokenSource}, Base: transport}}, nil
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// parse reads a URL.
func parse(u *url.URL) (bucket string, opts *Options, err error) {
	params := driver.NewParams(u)
	opts = &Options{
		Endpoint: driver.Parse(params, "endpoint", "", "a URL such as https://storage.example.com", parseEndpoint),
		Look:     params.Duration("look", 0, conditional.ShortestLook, conditional.LongestLook),
		Prefix:   objects.Prefix(u.Path),
	}
	if err := params.Err(); err != nil {
		return "", nil, err
	}
	if u.User != nil {
		return "", nil, errors.New("a GCS URL has no user: credentials come from the environment, as for every Google tool")
	}
	if u.Opaque != "" || u.Fragment != "" || !bucketName.MatchString(u.Host) {
		return "", nil, errors.New("want gs://bucket/prefix; the parameter endpoint names a service other than Google")
	}
	return u.Host, opts, objects.Options{Prefix: opts.Prefix}.Check()
}

func parseEndpoint(text string) (string, error) {
	u, err := hosturl.Endpoint(text)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(u.String(), "/"), nil // The scheme is in lower case.
}
