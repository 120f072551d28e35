package dynamodblock

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithy "github.com/aws/smithy-go/middleware"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional"
)

// The attributes of an item.
const (
	nameAttribute    = "name"    // the partition key: the prefix, a slash and the key
	versionAttribute = "version" // a random text, new with each write
	dataAttribute    = "data"    // the record, as JSON
	expiresAttribute = "expires" // the second from which on DynamoDB may delete the item
)

// A register keeps a record of each key in an item.
type register struct {
	conditional.Clock
	client *dynamodb.Client
	table  string
	prefix string
	proof  conditional.Proof
}

var (
	_ caslock.Register = (*register)(nil)
	_ caslock.Clock    = (*register)(nil)
)

// once keeps the client from retrying. The engine of the locks retries.
func once(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = conditional.KeepConnection(o.HTTPClient)
}

// name is the name of the item of a key. A prefix has no slash, so names of different prefixes
// differ.
func (r *register) name(key string) string { return r.prefix + "/" + key }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func (r *register) Read(ctx context.Context, key string) (caslock.Record, error) {
	name, began := r.name(key), time.Now()
	out, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &r.table, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{nameAttribute: text(name)},
	}, once)
	if err != nil {
		return caslock.Record{}, r.failure(ctx, "read", name, began, err)
	}
	r.hears(out.ResultMetadata)
	return r.record(name, out.Item)
}

// record returns the record of an item, the zero Record if there is no item.
func (r *register) record(name string, item map[string]types.AttributeValue) (caslock.Record, error) {
	if len(item) == 0 {
		return caslock.Record{}, nil
	}
	version, _ := item[versionAttribute].(*types.AttributeValueMemberS)
	data, _ := item[dataAttribute].(*types.AttributeValueMemberS)
	if version == nil || data == nil || version.Value == "" {
		return caslock.Record{}, fmt.Errorf("%s: the item was not written by holdfast", r.place(name))
	}
	return caslock.Record{Version: version.Value, Data: []byte(data.Value)}, nil
}

func (r *register) Swap(ctx context.Context, key, version string, data []byte, keep time.Duration) (next string, err error) {
	if err := r.prove(ctx); err != nil {
		return "", fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	}
	return r.put(ctx, r.name(key), version, data, keep)
}

// put writes an item that has the given version; "" means that there must be no item.
func (r *register) put(ctx context.Context, name, version string, data []byte, keep time.Duration) (next string, err error) {
	next = rand.Text()
	in := &dynamodb.PutItemInput{
		TableName: &r.table,
		Item: map[string]types.AttributeValue{
			nameAttribute:    text(name),
			versionAttribute: text(next),
			dataAttribute:    text(string(data)),
			expiresAttribute: &types.AttributeValueMemberN{Value: strconv.FormatInt(r.Time().Add(keep+late).Unix(), 10)},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if version == "" {
		in.ConditionExpression = aws.String("attribute_not_exists(#n)")
		in.ExpressionAttributeNames = map[string]string{"#n": nameAttribute}
	} else {
		in.ConditionExpression = aws.String("#v = :v")
		in.ExpressionAttributeNames = map[string]string{"#v": versionAttribute}
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":v": text(version)}
	}
	began := time.Now()
	out, err := r.client.PutItem(ctx, in, once)
	if err != nil {
		return "", r.refused(name, r.failure(ctx, "write", name, began, err))
	}
	r.hears(out.ResultMetadata)
	return next, nil
}

// late is for how long DynamoDB keeps an item beyond the wish of caslock. A clock that is behind
// by less does no harm.
const late = 24 * time.Hour

// hears notes the clock of the service.
func (r *register) hears(answer smithy.Metadata) {
	if t, ok := middleware.GetServerTime(answer); ok {
		r.Note(t)
	}
}

// List scans the table: DynamoDB has no order of partition keys.
func (r *register) List(ctx context.Context, prefix string) iter.Seq2[caslock.Record, error] {
	return func(yield func(caslock.Record, error) bool) {
		start := r.name(prefix)
		pages := dynamodb.NewScanPaginator(r.client, &dynamodb.ScanInput{
			TableName: &r.table, ConsistentRead: aws.Bool(true),
			FilterExpression:          aws.String("begins_with(#n, :n)"),
			ExpressionAttributeNames:  map[string]string{"#n": nameAttribute},
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": text(start)},
		})
		for pages.HasMorePages() {
			began := time.Now()
			page, err := pages.NextPage(ctx, once)
			if err != nil {
				yield(caslock.Record{}, r.failure(ctx, "list", start, began, err))
				return
			}
			for _, item := range page.Items {
				record, err := r.record(start, item)
				if err != nil {
					continue // of another program
				}
				if !yield(record, nil) {
					return
				}
			}
		}
	}
}

// place names an item for people.
func (r *register) place(name string) string {
	return "dynamodb://" + r.table + "/" + strings.ToValidUTF8(name, "?")
}
