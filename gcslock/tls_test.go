package gcslock_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2/clientcredentials"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/gcslock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestTLS: an https endpoint has to prove its name, to an authority of the system or of the caller's
// client.
func TestTLS(t *testing.T) {
	server := servers.StartGCSTLS(t)
	t.Setenv("STORAGE_EMULATOR_HOST", "https://"+server.Addr()) // which wants no credentials
	if _, err := conditionaltest.Open(t, "gs://"+servers.GCSBucket); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("without the authority: %v, want an error about the certificate", err)
	}
	for name, want := range map[string]string{"": "", "elsewhere.example": "elsewhere.example"} {
		client := conditionaltest.Client(t)
		client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: server.TLS.Config().RootCAs, ServerName: name}
		s := must.Get(gcslock.New(client, servers.GCSBucket, &gcslock.Options{Endpoint: "https://" + server.Addr()}))
		defer s.Close()
		g, err := s.Acquire(t.Context(), ask("key", "id"))
		if g.OK != (want == "") || g.OK != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("the name %q: %+v, %v; want %q", name, g, err, want)
		}
	}
}

// TestNewCredentials rotates the token while a lock is held: the client of golang.org/x/oauth2 asks
// for a new one when the old one has expired. A front refuses the old one, since the emulator takes
// all.
func TestNewCredentials(t *testing.T) {
	t.Parallel()
	tokens := conditionaltest.NewSecrets()
	emulator := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: shared.Addr()})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"access_token":%q,"expires_in":1}`, tokens.Got()) // The client asks again within 10 s of the end.
		case r.Header.Get("Authorization") != "Bearer "+tokens.Accepted():
			refuse(w, http.StatusUnauthorized, "authError")
		default:
			emulator.ServeHTTP(w, r)
		}
	}))
	defer front.Close()
	client := (&clientcredentials.Config{ClientID: "locks", TokenURL: front.URL + "/token"}).Client(t.Context())
	locks := must.Get(holdfast.New(must.Get(gcslock.New(client, servers.GCSBucket, &gcslock.Options{Endpoint: front.URL, Prefix: "rotating/"})), nil))
	defer locks.Close()
	tokens.Replace(t, locks, "authError")
}
