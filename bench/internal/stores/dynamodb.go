package stores

import (
	"context"
	"net/url"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func dynamoStore() Store {
	return Store{
		Name: "dynamodb", Only: emulated, Title: "DynamoDB", Cost: "requests", Waiting: 100, Polls: true,
		Modules: []string{"cirello.io/dynamolock/v2", "github.com/aws/aws-sdk-go-v2/service/dynamodb"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt, Renews: true},
			{Name: "Holdfast, look=10ms", Open: looking("10ms"), Renews: true, Patient: true},
			{Name: "dynamolock, 500 ms", Kind: Peer, Open: openDynamolock(500 * time.Millisecond), Renews: true},
			{Name: "dynamolock, 5 ms", Kind: Peer, Open: openDynamolock(longPause), Renews: true, Patient: true},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			s := servers.StartDynamoDB(tb)
			return &Server{At: []string{s.URL()}, About: s.Version(), Count: func(Side) int { return s.Requests() }}
		},
	}
}

// openDynamolock opens the Go version of Amazon's lock client, which tries again after each pause.
func openDynamolock(pause time.Duration) opener {
	return func(at []string, ttl time.Duration) (*Library, error) {
		u, err := url.Parse(at[0])
		if err != nil {
			return nil, err
		}
		q := u.Query()
		loaded, err := config.LoadDefaultConfig(context.Background(), config.WithRegion(q.Get("region")),
			config.WithSharedConfigProfile("default"), config.WithSharedCredentialsFiles([]string{q.Get("credentials")}))
		if err != nil {
			return nil, err
		}
		client := dynamodb.NewFromConfig(loaded, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(q.Get("endpoint")) })
		locks, err := dynamolock.New(client, u.Host, dynamolock.WithPartitionKeyName("name"),
			dynamolock.WithLeaseDuration(ttl), dynamolock.WithHeartbeatPeriod(ttl/3))
		if err != nil {
			return nil, err
		}
		const forEver = 24 * time.Hour
		lock := func(ctx context.Context, key string) (func() error, error) {
			l, err := locks.AcquireLockWithContext(ctx, "dynamolock/"+key,
				dynamolock.WithRefreshPeriod(pause), dynamolock.WithAdditionalTimeToWaitForLock(forEver))
			return func() error {
				found, err := locks.ReleaseLockWithContext(context.Background(), l)
				return gone(found, err)
			}, err
		}
		return &Library{lock, func() { _ = locks.Close() }}, nil
	}
}
