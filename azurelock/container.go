package azurelock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sharedkey"
)

// A Container is a container of blobs, and how a program may use it: by a Key, by a Credential, or
// by the SAS token in the URL. Without all three, requests are anonymous.
type Container struct {
	// URL is the address, such as https://account.blob.core.windows.net/container. A query is a
	// SAS token.
	URL string

	// Account is the name of the account. Empty means the host of the URL up to the first dot.
	Account string

	// Key is a key of the account, as Azure shows it.
	Key string

	// Credential gets tokens of Entra ID, such as a credential of package azidentity. The URL
	// must then begin with https.
	Credential azcore.TokenCredential

	// Client sends the requests. nil means a client with the defaults of net/http. Redirects are
	// not followed.
	Client *http.Client
}

// scope is what a token of Entra ID is for, in every cloud.
const scope = "https://storage.azure.com/.default"

var containerName = regexp.MustCompile(`^(\$root|[a-z0-9](-?[a-z0-9])*)$`)

// service returns the service with the blobs of a container.
func (c *Container) service() (*service, error) {
	u, err := url.Parse(c.URL)
	if err != nil { // The text of err has the URL, and so the SAS token.
		return nil, fmt.Errorf("%w: the URL of the container is malformed", driver.ErrInvalid)
	}
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || !containerName.MatchString(name) {
		return nil, fmt.Errorf("%w: the URL of the container is %.200q (want one such as https://account.blob.core.windows.net/container)",
			driver.ErrInvalid, bare(u))
	}
	first, _, _ := strings.Cut(u.Hostname(), ".")
	s := &service{at: *u, sas: u.RawQuery, account: cmp.Or(c.Account, first), container: name}
	s.at.RawQuery = ""
	if c.Key != "" && c.Credential != nil || s.sas != "" && (c.Key != "" || c.Credential != nil) {
		return nil, fmt.Errorf("%w: the container %s has more than one of a key, a credential and a SAS token", driver.ErrInvalid, s)
	}
	var how []policy.Policy
	if c.Key != "" {
		key, err := sharedkey.New(s.account, c.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", driver.ErrInvalid, s, err)
		}
		how = append(how, signer{key})
	}
	if c.Credential != nil {
		if u.Scheme != "https" {
			return nil, fmt.Errorf("%w: %s is reached by http: a token of Entra ID needs https", driver.ErrInvalid, s)
		}
		how = append(how, runtime.NewBearerTokenPolicy(&credential{c.Credential}, []string{scope}, nil))
	}
	client := *cmp.Or(c.Client, &http.Client{})
	// A redirect is an answer. A redirected PUT would become a GET.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.pipeline = runtime.NewPipeline("holdfast", "", runtime.PipelineOptions{PerRetry: how}, &policy.ClientOptions{
		Transport: &client,
		// A retry of a write whose answer was lost would be refused by its own first attempt. The
		// engine of the locks retries.
		Retry: policy.RetryOptions{MaxRetries: -1},
	})
	return s, nil
}

// bare returns a URL without what may be secret.
func bare(u *url.URL) string {
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return clean.String()
}

// A signer signs requests with the key of the account.
type signer struct{ key sharedkey.Key }

func (s signer) Do(r *policy.Request) (*http.Response, error) {
	s.key.Authorize(r.Raw())
	return r.Next()
}

// errNoToken marks the error of a credential: no request was sent to the container.
var errNoToken = errors.New("there are no credentials")

// A credential marks the errors of a credential.
type credential struct{ azcore.TokenCredential }

func (c *credential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := c.TokenCredential.GetToken(ctx, o)
	if err != nil {
		return token, fmt.Errorf("%w: %w", errNoToken, plainly(err))
	}
	return token, nil
}

// plainly leaves out the body of an answer, which may have secrets, and keeps the code of the error.
func plainly(err error) error {
	var refused *azidentity.AuthenticationFailedError
	var other *azcore.ResponseError
	switch {
	case errors.As(err, &refused) && refused.RawResponse != nil:
		var said struct{ Error string } // see RFC 6749, section 5.2
		if body, err := runtime.Payload(refused.RawResponse); err == nil {
			_ = json.Unmarshal(body, &said) // The answer of a proxy need not be JSON.
		}
		return fmt.Errorf("%d %s", refused.RawResponse.StatusCode, cmp.Or(said.Error, http.StatusText(refused.RawResponse.StatusCode)))
	case errors.As(err, &other):
		return fmt.Errorf("%d %s", other.StatusCode, cmp.Or(other.ErrorCode, http.StatusText(other.StatusCode)))
	}
	return err
}
