package s3lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/fence"
)

// TokenKey is the metadata of an object that has the fencing token: x-amz-meta-holdfast-token.
const TokenKey = "holdfast-token"

// A Bucket is the bucket of a [fence.Object]. Make a Bucket with NewBucket.
type Bucket struct{ register *register }

var _ fence.Bucket = (*Bucket)(nil)

// NewBucket returns a bucket that exists. NewBucket does no I/O. Before the first write, the
// Bucket tests under prefix whether the service keeps the conditions of writes, as
// [Store.Check] describes; an empty prefix means DefaultPrefix.
func NewBucket(client *s3.Client, name, prefix string) (*Bucket, error) {
	s, err := New(client, name, &Options{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	return &Bucket{s.register}, s.Close()
}

// Get implements [fence.Bucket].
func (b *Bucket) Get(ctx context.Context, name string) (fence.Stored, error) {
	o, err := b.register.get(ctx, name)
	if err != nil || o.version == "" {
		return fence.Stored{}, err
	}
	stored := fence.Stored{Version: o.version, Data: o.data}
	if text, found := o.metadata[TokenKey]; found {
		if stored.Token, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fence.Stored{}, fmt.Errorf("s3://%s/%s: the metadata %s is %.40q, and no number", b.register.bucket, name, TokenKey, text)
		}
	}
	return stored, nil
}

// Put implements [fence.Bucket].
func (b *Bucket) Put(ctx context.Context, name, version string, data []byte, token uint64) error {
	if err := b.register.prove(ctx); err != nil {
		return err
	}
	_, err := b.register.put(ctx, name, version, data, map[string]string{TokenKey: strconv.FormatUint(token, 10)})
	if errors.Is(err, caslock.ErrConflict) {
		return fmt.Errorf("%w: %w", fence.ErrChanged, err)
	}
	return err
}
