package dynamodblock_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/dynamodblock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

var shared *servers.DynamoDB

// The claims of the tests.
var (
	ask     = conditionaltest.Ask
	granted = conditionaltest.Granted
	keysOf  = conditionaltest.Keys
)

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartDynamoDB(tb) }))
}

// look makes waiters look often.
const look = 100 * time.Millisecond

// under returns the URL of a table with a prefix, and waiters that look often.
func under(at, prefix string) string { return at + "&look=" + look.String() + "&prefix=" + prefix }

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
			return must.Get(dynamodblock.New(c, servers.DynamoTable, &dynamodblock.Options{Prefix: own.Of(t), Look: look}))
		},
		Newer: func(t testing.TB, key string) func() string { return newer(t, own.Of(t), key) },
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p := servers.StartProxy(t, shared.Addr())
			return opened(t, under(shared.Through(p.Addr()), own.Of(t))), p
		},
	}
}

// client returns a client of the shared engine.
func client(t testing.TB) *dynamodb.Client { return clientOf(t, shared.URL()) }

// clientOf returns a client of the engine in a URL with an endpoint and credentials.
func clientOf(t testing.TB, at string) *dynamodb.Client {
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
	return dynamodb.NewFromConfig(loaded, func(o *dynamodb.Options) {
		o.BaseEndpoint = aws.String(q.Get("endpoint"))
		o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(conditionaltest.Connections(t))
	})
}

// primary is the primary key of the item of a key.
func primary(prefix, key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: prefix + "/" + key}}
}

// newer turns the record of a key into one of the next format.
func newer(t testing.TB, prefix, key string) (record func() string) {
	c := client(t)
	item := func() map[string]types.AttributeValue {
		out, err := c.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(servers.DynamoTable), ConsistentRead: aws.Bool(true), Key: primary(prefix, key)})
		if err != nil {
			t.Fatal(err)
		}
		return out.Item
	}
	read := func() string { return item()["data"].(*types.AttributeValueMemberS).Value }
	was := item()
	was["data"] = &types.AttributeValueMemberS{Value: strings.Replace(read(), `"format":1`, `"format":2`, 1)}
	was["version"] = &types.AttributeValueMemberS{Value: rand.Text()}
	if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(servers.DynamoTable), Item: was}); err != nil {
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
