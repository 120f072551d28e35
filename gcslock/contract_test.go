package gcslock_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/gcslock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/filename"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

var shared *servers.GCS

// The claims of the tests.
var (
	ask     = conditionaltest.Ask
	renew   = conditionaltest.Renew
	granted = conditionaltest.Granted
)

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartGCS(tb) }))
}

// look makes waiters look often.
const look = 100 * time.Millisecond

// under returns the URL of a bucket with a prefix, and waiters that look often.
func under(t testing.TB, at, prefix string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + prefix
	q := u.Query()
	q.Set("look", look.String())
	u.RawQuery = q.Encode()
	return u.String()
}

func opened(t testing.TB, at string) driver.Store {
	t.Helper()
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at) })
	t.Cleanup(func() { s.Close() })
	return s
}

// harness has one client for all stores: a new connection takes more processor time than most rules.
func harness(t testing.TB) drivertest.Harness {
	var own conditionaltest.Prefixes
	c := conditionaltest.Client(t)
	return drivertest.Harness{
		Heavy: true,
		Lacks: drivertest.Notify,
		Open: func(t testing.TB) driver.Store {
			return must.Get(gcslock.New(c, servers.GCSBucket, &gcslock.Options{Endpoint: "http://" + shared.Addr(), Prefix: own.Of(t) + "/", Look: look}))
		},
		Newer: func(t testing.TB, key string) func() string { return newer(t, own.Of(t), key) },
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p := servers.StartProxy(t, shared.Addr())
			return opened(t, under(t, shared.Through(p.Addr()), own.Of(t))), p
		},
	}
}

// download returns the data of an object of the shared server.
func download(t testing.TB, name string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+shared.Addr()+"/"+servers.GCSBucket+"/"+strings.ReplaceAll(name, "%", "%25"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", name, got.Status, err)
	}
	return string(text)
}

// do sends a request to the shared server.
func do(t testing.TB, method, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+shared.Addr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s", method, path, got.Status)
	}
}

// upload writes an object whatever its generation is.
func upload(t testing.TB, name, text string) {
	t.Helper()
	do(t, http.MethodPost, "/upload/storage/v1/b/"+servers.GCSBucket+"/o?uploadType=media&name="+url.QueryEscape(name), text)
}

// newer turns the record of a key into one of the next format.
func newer(t testing.TB, prefix, key string) (record func() string) {
	name := prefix + "/" + filename.Of("", key)
	upload(t, name, strings.Replace(download(t, name), `"format":1`, `"format":2`, 1))
	return func() string { return download(t, name) }
}

// Worth 20 s: the whole contract, most of whose rules wait for a TTL or for a server that is
// silent.
func TestContract(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, harness(t))
}

func BenchmarkStore(b *testing.B) {
	drivertest.Bench(b, harness(b))
}
