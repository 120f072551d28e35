package dynamodblock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/dynamodblock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func release(ctx context.Context, s driver.Store, a driver.Ask) error {
	return errors.Join(s.Release(ctx, []driver.Release{{Claim: a.Claim}})...)
}

// Locks stand while the engine is killed, and while it is paused.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	server := servers.StartDynamoDB(t)
	conditionaltest.Faults(t, server, opened(t, server.URL()), opened(t, server.URL()))
}

// An item that is deleted by hand ends the lock, and the next token is larger.
func TestItemDeletedByHand(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	at := under(shared.URL(), prefix)
	conditionaltest.Removed(t, opened(t, at), opened(t, at), func() {
		if _, err := client(t).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(servers.DynamoTable), Key: primary(prefix, "key")}); err != nil {
			t.Fatal(err)
		}
	})
}

// The keys of a prefix are not those of a longer prefix, and a key may have any text.
func TestKeysOfAnotherPrefix(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	conditionaltest.Apart(t, opened(t, under(shared.URL(), prefix)), opened(t, under(shared.URL(), prefix+"b")), "a/b\x00 ü.canary")
}

// One client of 8 wins each race for an item.
func TestRaces(t *testing.T) {
	t.Parallel()
	at := under(shared.URL(), strings.ToLower(rand.Text()))
	conditionaltest.Race(t, 40, func() conditionaltest.Racer { return opened(t, at).(*dynamodblock.Store).Register() })
}
