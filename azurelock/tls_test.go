package azurelock_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/azurelock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// trusting returns a client that trusts the authority of an emulator. The certificate must have the
// name, "" for that of the URL.
func trusting(t *testing.T, server *servers.Azurite, name string) *http.Client {
	t.Helper()
	client := conditionaltest.Client(t)
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: server.TLS.Config().RootCAs, ServerName: name}
	return client
}

// TestTLS: an https endpoint has to prove its name, to an authority of the system or of the caller's
// client.
func TestTLS(t *testing.T) {
	t.Parallel()
	server := servers.StartAzuriteTLS(t)
	if _, err := conditionaltest.Open(t, server.URL()); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("without the authority: %v, want an error about the certificate", err)
	}
	for name, want := range map[string]string{"": "", "elsewhere.example": "elsewhere.example"} {
		s := must.Get(azurelock.New(&azurelock.Container{
			URL: server.Endpoint() + "/" + servers.AzureContainer, Account: servers.AzureAccount, Key: server.Key, Client: trusting(t, server, name),
		}, nil))
		defer s.Close()
		g, err := s.Acquire(t.Context(), ask("key", "id"))
		if g.OK != (want == "") || g.OK != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("the name %q: %+v, %v; want %q", name, g, err, want)
		}
	}
}

// jwt gives a token like those of Entra ID, with no signature, which the emulator does not check. The
// token ends so far from now. The SDK takes it for expired, and asks again.
type jwt struct{ ends atomic.Int64 }

func (j *jwt) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	now := time.Now()
	claims := fmt.Sprintf(`{"aud":"https://storage.azure.com","iss":"https://sts.windows.net/tenant/","iat":0,"nbf":0,"exp":%d}`,
		now.Add(time.Duration(j.ends.Load())).Unix())
	encode := base64.RawURLEncoding.EncodeToString
	return azcore.AccessToken{Token: encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + ".", ExpiresOn: now}, nil
}

// TestNewCredentials rotates the token of Entra ID while a lock is held: the SDK asks for a new one
// when the old one has expired. The emulator refuses a token that has expired.
func TestNewCredentials(t *testing.T) {
	t.Parallel()
	server := servers.StartAzuriteTLS(t, "--oauth", "basic")
	token := &jwt{}
	token.ends.Store(int64(time.Hour))
	locks := must.Get(holdfast.New(must.Get(azurelock.New(&azurelock.Container{
		URL: server.Endpoint() + "/" + servers.AzureContainer, Account: servers.AzureAccount, Credential: token, Client: trusting(t, server, ""),
	}, nil)), nil))
	defer locks.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lock := must.Get(servers.Patient(ctx, locks.Lock, "key"))
	token.ends.Store(int64(-time.Hour))
	if _, err := servers.Patient(ctx, locks.TryLock, "other"); err == nil || !strings.Contains(err.Error(), "AuthenticationFailed") {
		t.Errorf("locked with an expired token: %v, want a refusal", err)
	}
	token.ends.Store(int64(time.Hour))
	if err := unlocking.Release(lock.Unlock); err != nil {
		t.Errorf("unlocked with the second token: %v", err)
	}
	must.Get(servers.Patient(ctx, locks.Lock, "other"))
}
