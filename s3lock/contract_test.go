package s3lock_test

import (
	"context"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/filename"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/s3lock"
)

var shared *servers.S3

// The claims of the tests.
var (
	ask     = conditionaltest.Ask
	granted = conditionaltest.Granted
)

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartS3(tb) }))
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

// harness has one client for all stores: a client of the SDK takes more processor time than most
// rules.
func harness(t testing.TB) drivertest.Harness {
	var own conditionaltest.Prefixes
	c := client(t)
	return drivertest.Harness{
		Heavy: true,
		Lacks: drivertest.Notify,
		Open: func(t testing.TB) driver.Store {
			return must.Get(s3lock.New(c, servers.S3Bucket, &s3lock.Options{Prefix: own.Of(t) + "/", Look: look}))
		},
		Newer: func(t testing.TB, key string) func() string { return newer(t, own.Of(t), key) },
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p := servers.StartProxy(t, shared.Addr())
			return opened(t, under(t, shared.Through(p.Addr()), own.Of(t))), p
		},
	}
}

// client returns a client of the shared server.
func client(t testing.TB) *s3.Client { return clientOf(t, shared.URL()) }

// clientOf returns a client of the server in a URL with an endpoint and credentials.
func clientOf(t testing.TB, at string) *s3.Client {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	loaded, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("us-east-1"),
		config.WithSharedConfigProfile("default"), config.WithSharedCredentialsFiles([]string{q.Get("credentials")}))
	if err != nil {
		t.Fatal(err)
	}
	return s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle = aws.String(q.Get("endpoint")), true
		o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(conditionaltest.Connections(t))
	})
}

// newer turns the record of a key into one of the next format.
func newer(t testing.TB, prefix, key string) (record func() string) {
	c, name := client(t), prefix+"/"+filename.Of("", key)
	read := func() string {
		out, err := c.GetObject(context.Background(), &s3.GetObjectInput{Bucket: aws.String(servers.S3Bucket), Key: &name})
		if err != nil {
			t.Fatal(err)
		}
		defer out.Body.Close()
		text, err := io.ReadAll(out.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := strings.Replace(read(), `"format":1`, `"format":2`, 1)
	if _, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(servers.S3Bucket), Key: &name, Body: strings.NewReader(text)}); err != nil {
		t.Fatal(err)
	}
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
