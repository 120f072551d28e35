package azurelock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/holdfast-go/holdfast/azurelock"
	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sharedkey"
)

// noToken refuses to give a token, with this error.
type noToken struct{ err error }

func (c noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, c.err
}

// The answer of a service that refuses to give a token is not the answer of the container. Its body
// may have secrets.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	body := httptest.NewRecorder()
	body.WriteHeader(http.StatusUnauthorized)
	body.WriteString(`{"error": "invalid_client", "error_description": "moonlight"}`)
	for want, err := range map[string]error{
		"412 ConditionNotMet": &azcore.ResponseError{StatusCode: http.StatusPreconditionFailed, ErrorCode: "ConditionNotMet", RawResponse: body.Result()},
		"401 invalid_client":  &azidentity.AuthenticationFailedError{RawResponse: body.Result()},
		"nobody is logged in": errors.New("nobody is logged in"),
	} {
		s, err := azurelock.New(&azurelock.Container{URL: "https://127.0.0.1:1/container", Credential: noToken{err}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, err = s.Acquire(t.Context(), ask("key", "id"))
		if !errors.Is(err, driver.ErrUnwritten) || errors.Is(err, caslock.ErrConflict) || !strings.Contains(err.Error(), "there are no credentials: "+want) || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("Acquire returned %v, want that there are no credentials: %s", err, want)
		}
	}
}

// silent gives no token until it is released, not even at the end of the context.
type silent chan struct{}

func (s silent) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	<-s
	return azcore.AccessToken{}, errors.New("late")
}

// A call ends with its context, also while another call has requested the token.
func TestCredentialHangs(t *testing.T) {
	t.Parallel()
	release := make(silent)
	defer close(release)
	s, err := azurelock.New(&azurelock.Container{URL: "https://127.0.0.1:1/container", Credential: release}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, key := range []string{"key", "other"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := s.Acquire(ctx, ask(key, "id")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: Acquire returned %v, want the end of the context", key, err)
		}
	}
}

// oneToken gives one token, and counts how often.
type oneToken struct {
	mu    sync.Mutex
	asked []string
}

func (o *oneToken) GetToken(_ context.Context, opts policy.TokenRequestOptions) (azcore.AccessToken, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, opts.Scopes...)
	return azcore.AccessToken{Token: moonlight, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// Requests have the token of a credential, which is asked once.
func TestToken(t *testing.T) {
	t.Parallel()
	l := &liar{blobs: make(map[string]blob), answer: func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+moonlight {
			return false
		}
		refuse(w, http.StatusForbidden, "AuthorizationFailure")
		return true
	}}
	server := httptest.NewTLSServer(l)
	defer server.Close()
	gives := &oneToken{}
	s, err := azurelock.New(&azurelock.Container{URL: server.URL + "/container", Credential: gives, Client: server.Client()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	granted(t, s, ask("key", "id"))
	granted(t, s, ask("other", "id"))
	if len(gives.asked) != 1 || gives.asked[0] != "https://storage.azure.com/.default" {
		t.Errorf("the credential was asked for %q", gives.asked)
	}
}

// sas returns a SAS token for the container of the shared emulator, as "Create a service SAS" of
// the REST API describes.
func sas(t *testing.T, permissions string) string {
	t.Helper()
	const version = "2021-12-02"
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	key, err := sharedkey.New(servers.AzureAccount, shared.Key)
	if err != nil {
		t.Fatal(err)
	}
	signature := key.Sign(strings.Join([]string{
		permissions, "", until, "/blob/" + servers.AzureAccount + "/" + servers.AzureContainer,
		"", "", "", version, "c", "", "", "", "", "", "", "",
	}, "\n"))
	return url.Values{"sv": {version}, "sr": {"c"}, "sp": {permissions}, "se": {until}, "sig": {signature}}.Encode()
}

// A SAS token for reading, creating, writing and listing is enough. Without one of them, the error
// says what is missing, and does not show the token.
func TestSAS(t *testing.T) {
	t.Parallel()
	at := under(t, shared.URL(), "sas")
	for permissions, enough := range map[string]bool{"rcwl": true, "rcl": false} {
		token := sas(t, permissions)
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("credentials", file(t, "AccountName=holdfast;SharedAccessSignature="+token))
		u.RawQuery = q.Encode()
		s, err := conditionaltest.Open(t, u.String())
		if !enough {
			if err == nil || !strings.Contains(err.Error(), "sp=rcwl") || strings.Contains(err.Error(), "sig=") {
				t.Errorf("with sp=%s: %v, want that rights are missing", permissions, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		granted(t, s, ask("key", "id"))
		found := 0
		for _, err := range s.(driver.Inspector).Keys(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			found++
		}
		if found != 1 {
			t.Errorf("%d keys are listed, want one", found)
		}
	}
}

// TestWarnsOfPlainSAS takes 0.0.0.0 for another host, at which this one answers.
func TestWarnsOfPlainSAS(t *testing.T) {
	t.Parallel()
	for host, warns := range map[string]bool{"127.0.0.1": false, "0.0.0.0": true} {
		endpoint := strings.Replace(shared.Endpoint(), "127.0.0.1", host, 1)
		s, err := azurelock.New(&azurelock.Container{
			URL: endpoint + "/" + servers.AzureContainer + "?" + sas(t, "rcwl"), Account: servers.AzureAccount,
		}, &azurelock.Options{Prefix: "plain/"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		warnings, err := s.Check(t.Context())
		told := len(warnings) == 1 && strings.Contains(warnings[0], "0.0.0.0") && !strings.Contains(warnings[0], "sig=")
		if told != warns || len(warnings) > 1 || err != nil {
			t.Errorf("%s: warnings %q, %v", host, warnings, err)
		}
	}
}

// The environment has credentials, the connection string first.
func TestEnvironment(t *testing.T) {
	at := "azblob://" + servers.AzureAccount + "/" + servers.AzureContainer + "/environment"
	endpoint := "?endpoint=" + shared.Endpoint()
	for _, c := range []struct {
		at  string
		set map[string]string
		ok  bool
	}{
		{at, map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=" + shared.Endpoint() + "/;AccountName=holdfast;AccountKey=" + shared.Key, "AZURE_STORAGE_KEY": moonlight}, true},
		{at + endpoint, map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=http://127.0.0.1:1;AccountKey=" + shared.Key + ";"}, true},
		{at + endpoint, map[string]string{"AZURE_STORAGE_KEY": shared.Key, "AZURE_STORAGE_SAS_TOKEN": "sig=a"}, true},
		{at + endpoint, map[string]string{"AZURE_STORAGE_SAS_TOKEN": "?" + sas(t, "rcwl")}, true},
		{at + endpoint, nil, false}, // a token of Entra ID, which is never sent by http
	} {
		for _, name := range []string{"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"} {
			t.Setenv(name, c.set[name])
		}
		s, err := conditionaltest.Open(t, c.at)
		if err == nil {
			s.Close()
		}
		if c.ok != (err == nil) {
			t.Errorf("%v: %v", c.set, err)
		}
	}
}
