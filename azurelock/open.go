package azurelock

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

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional"
	"github.com/holdfast-go/holdfast/internal/hosturl"
	"github.com/holdfast-go/holdfast/internal/objects"
	"github.com/holdfast-go/holdfast/internal/silence"
)

func init() { driver.Register("azblob", open) }

// openLimit is how long a service may take to answer for the first time.
const openLimit = 5 * time.Second

// A place is what a URL names.
type place struct {
	account     string
	container   string
	endpoint    string // of the account; "" for that of the connection string, or of Azure
	credentials string
	opts        objects.Options
}

// open opens a container, and tests whether it keeps the conditions of writes.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	p, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // like the errors of Params
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	c, err := p.found()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	c.Client = &http.Client{Transport: transport}
	s, err := New(c, (*Options)(&p.opts))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	s.close = transport.CloseIdleConnections
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	if err := s.register.Check(limited); err != nil {
		return nil, errors.Join(silence.For(ctx, err, time.Since(began)), s.Close())
	}
	return s, nil
}

var accountName = regexp.MustCompile(`^[a-z0-9]+$`)

// parse reads a URL.
func parse(u *url.URL) (*place, error) {
	params := driver.NewParams(u)
	p := &place{
		account:     u.Host,
		endpoint:    driver.Parse(params, "endpoint", "", "a URL such as http://127.0.0.1:10000/devstoreaccount1", parseEndpoint),
		credentials: params.Text("credentials", ""),
		opts:        objects.Options{Look: params.Duration("look", 0, conditional.ShortestLook, conditional.LongestLook)},
	}
	if err := params.Err(); err != nil {
		return nil, err
	}
	if u.User != nil {
		return nil, errors.New("an azblob URL has no user: credentials come from the environment, or from the file of the parameter credentials")
	}
	var path string
	p.container, path, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if u.Opaque != "" || u.Fragment != "" || !accountName.MatchString(u.Host) || !containerName.MatchString(p.container) {
		return nil, errors.New("want azblob://account/container/prefix; the parameter endpoint names a service other than the public cloud")
	}
	p.opts.Prefix = objects.Prefix(path)
	return p, p.opts.Check()
}

func parseEndpoint(text string) (string, error) {
	_, err := hosturl.Endpoint(text)
	return strings.TrimSuffix(text, "/"), err
}

// found returns the container with the first credentials that are there.
func (p *place) found() (*Container, error) {
	if p.credentials != "" {
		text, err := os.ReadFile(p.credentials)
		if err != nil {
			return nil, err
		}
		return p.connect(string(text), "the file "+p.credentials)
	}
	if text := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"); text != "" {
		return p.connect(text, "AZURE_STORAGE_CONNECTION_STRING")
	}
	c := &Container{URL: p.at(""), Account: p.account, Key: os.Getenv("AZURE_STORAGE_KEY")}
	if sas := os.Getenv("AZURE_STORAGE_SAS_TOKEN"); c.Key == "" && sas != "" {
		c.URL += "?" + strings.TrimPrefix(sas, "?")
		return c, nil
	}
	if c.Key != "" {
		return c, nil
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("there are no credentials: %w", err)
	}
	c.Credential = credential
	return c, nil
}

// at returns the URL of the container. The endpoint of the URL comes before another one.
func (p *place) at(otherwise string) string {
	endpoint := cmp.Or(p.endpoint, otherwise, "https://"+p.account+".blob.core.windows.net")
	return strings.TrimSuffix(endpoint, "/") + "/" + p.container
}

// connect reads a connection string, as the portal of Azure shows it. from is for errors, which do
// not show the text.
func (p *place) connect(text, from string) (*Container, error) {
	fields := make(map[string]string)
	for field := range strings.SplitSeq(strings.TrimSpace(text), ";") {
		name, value, found := strings.Cut(field, "=")
		if field != "" && !found {
			return nil, fmt.Errorf("%s is no connection string (want AccountName=...;AccountKey=... or BlobEndpoint=...;SharedAccessSignature=...)", from)
		}
		fields[strings.ToLower(name)] = value
	}
	if name := fields["accountname"]; name != "" && name != p.account {
		return nil, fmt.Errorf("%s is for the account %s, and the URL names %s", from, name, p.account)
	}
	endpoint := fields["blobendpoint"]
	if suffix := fields["endpointsuffix"]; endpoint == "" && suffix != "" {
		endpoint = cmp.Or(fields["defaultendpointsprotocol"], "https") + "://" + p.account + ".blob." + suffix
	}
	c := &Container{URL: p.at(endpoint), Account: p.account, Key: fields["accountkey"]}
	sas := strings.TrimPrefix(fields["sharedaccesssignature"], "?")
	switch {
	case c.Key == "" && sas == "":
		return nil, fmt.Errorf("%s has neither AccountKey nor SharedAccessSignature", from)
	case c.Key == "":
		c.URL += "?" + sas
	}
	return c, nil
}
