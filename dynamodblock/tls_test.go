package dynamodblock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamodblock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestTLS: an https endpoint has to prove its name, to an authority of the system or of the
// variable that the SDK reads.
func TestTLS(t *testing.T) {
	server := servers.StartDynamoDBTLS(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	refused := func(at, want string) {
		t.Helper()
		if _, err := conditionaltest.Open(t, at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", at, err, want)
		}
	}
	refused(server.URL(), "certificate signed by unknown authority")
	t.Setenv("AWS_CA_BUNDLE", server.TLS.CA)
	granted(t, opened(t, server.URL()), ask("key", "id"))
	refused(server.Through(strings.Replace(server.Addr(), "127.0.0.1", "0.0.0.0", 1)), "valid for 127.0.0.1, not 0.0.0.0")
}

// TestNewCredentials rotates the credentials while a lock is held: the SDK asks for new ones when the
// old ones have expired. A front refuses the old ones, since the emulator takes all.
func TestNewCredentials(t *testing.T) {
	t.Parallel()
	keys := conditionaltest.NewSecrets() // access keys
	emulator := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: shared.Addr()})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+keys.Accepted()+"/") {
			refuse(w, http.StatusBadRequest, "UnrecognizedClientException")
			return
		}
		emulator.ServeHTTP(w, r)
	}))
	defer front.Close()
	rotating := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		// They have expired, so that the SDK asks again.
		return aws.Credentials{AccessKeyID: keys.Got(), SecretAccessKey: "any", CanExpire: true, Expires: time.Now()}, nil
	})
	client := dynamodb.New(client(t).Options(), func(o *dynamodb.Options) {
		o.BaseEndpoint, o.Credentials = &front.URL, aws.NewCredentialsCache(rotating)
	})
	locks := must.Get(holdfast.New(must.Get(dynamodblock.New(client, servers.DynamoTable, &dynamodblock.Options{Prefix: "rotating"})), nil))
	defer locks.Close()
	keys.Replace(t, locks, "UnrecognizedClientException")
}
