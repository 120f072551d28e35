package azurelock

import (
	"context"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/objects"
)

// TokenKey is the metadata of a blob that has the fencing token: x-ms-meta-holdfast_token.
const TokenKey = "holdfast_token"

// A Bucket is the container of a [fence.Object]. Make a Bucket with NewBucket. Each write of a blob
// has another ETag, so the data stay as they are.
type Bucket struct{ guarded objects.Guarded }

var _ fence.Bucket = (*Bucket)(nil)

// NewBucket returns a container that exists. NewBucket does no I/O. Before the first write, the
// Bucket tests under prefix whether the service keeps the conditions of writes, as
// [Store.Check] describes; an empty prefix means DefaultPrefix.
func NewBucket(c *Container, prefix string) (*Bucket, error) {
	_, r, err := c.register(objects.Options{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	return &Bucket{objects.Guarded{Register: r, Token: TokenKey}}, nil
}

// Get implements [fence.Bucket].
func (b *Bucket) Get(ctx context.Context, name string) (fence.Stored, error) {
	return b.guarded.Get(ctx, name)
}

// Put implements [fence.Bucket].
func (b *Bucket) Put(ctx context.Context, name, version string, data []byte, token uint64) error {
	return b.guarded.Put(ctx, name, version, data, token)
}
