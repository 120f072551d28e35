package azurelock_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/azurelock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/filename"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sharedkey"
)

var shared *servers.Azurite

// The claims of the tests.
var (
	ask     = conditionaltest.Ask
	renew   = conditionaltest.Renew
	granted = conditionaltest.Granted
)

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartAzurite(tb, servers.AzuriteInMemory) }))
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
	u.Path += "/" + prefix
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
	in := container()
	in.Client = conditionaltest.Client(t)
	return drivertest.Harness{
		Heavy: true,
		Lacks: drivertest.Notify,
		Open: func(t testing.TB) driver.Store {
			return must.Get(azurelock.New(in, &azurelock.Options{Prefix: own.Of(t) + "/", Look: look}))
		},
		Newer: func(t testing.TB, key string) func() string { return newer(t, own.Of(t), key) },
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p := servers.StartProxy(t, shared.Addr())
			return opened(t, under(t, shared.Through(p.Addr()), own.Of(t))), p
		},
	}
}

// send sends a request to a blob of the shared emulator, and returns the text of the answer. A query
// may follow the name.
func send(t testing.TB, method, name, body string, header map[string]string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, shared.Endpoint()+"/"+servers.AzureContainer+"/"+strings.ReplaceAll(name, "%", "%25"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	r.Header.Set("x-ms-version", "2021-12-02")
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	key, err := sharedkey.New(servers.AzureAccount, shared.Key)
	if err != nil {
		t.Fatal(err)
	}
	key.Authorize(r)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode > 299 {
		t.Fatalf("%s %s: %s: %s, %v", method, name, answer.Status, text, err)
	}
	return string(text)
}

// put writes a blob of the shared emulator as another program would.
func put(t testing.TB, name, text string, metadata map[string]string) {
	t.Helper()
	header := map[string]string{"x-ms-blob-type": "BlockBlob"}
	for key, value := range metadata {
		header["x-ms-meta-"+key] = value
	}
	send(t, http.MethodPut, name, text, header)
}

// newer turns the record of a key into one of the next format.
func newer(t testing.TB, prefix, key string) (record func() string) {
	name := prefix + "/" + filename.Of("", key)
	read := func() string { return send(t, http.MethodGet, name, "", nil) }
	put(t, name, strings.Replace(read(), `"format":1`, `"format":2`, 1), nil)
	return read
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
