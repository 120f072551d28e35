package s3lock

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/objects"
)

const (
	// TokenKey is the metadata of an object that has the fencing token:
	// x-amz-meta-holdfast-token.
	TokenKey = "holdfast-token"

	// NonceKey is the metadata of an object that has the number of the write in decimal:
	// x-amz-meta-holdfast-nonce. The object ends with the number in 64 spaces and tabs, which are
	// 0 and 1 from the highest bit on.
	NonceKey = "holdfast-nonce"
)

// A Bucket is the bucket of a [fence.Object]. Make a Bucket with NewBucket.
//
// An ETag is a digest of the data, and does not depend on the metadata. So Put appends 64 spaces
// and tabs that never repeat, and Get removes them. JSON and most other text stay readable for
// other programs.
type Bucket struct{ guarded objects.Guarded }

var _ fence.Bucket = (*Bucket)(nil)

// NewBucket returns a bucket that exists. NewBucket does no I/O. Before the first write, the
// Bucket tests under prefix whether the service keeps the conditions of writes, as
// [Store.Check] describes; an empty prefix means DefaultPrefix.
func NewBucket(client *s3.Client, name, prefix string) (*Bucket, error) {
	r, err := register(client, name, objects.Options{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	return &Bucket{objects.Guarded{Register: r, Token: TokenKey, Nonce: NonceKey}}, nil
}

// Get implements [fence.Bucket].
func (b *Bucket) Get(ctx context.Context, name string) (fence.Stored, error) {
	return b.guarded.Get(ctx, name)
}

// Put implements [fence.Bucket].
func (b *Bucket) Put(ctx context.Context, name, version string, data []byte, token uint64) error {
	return b.guarded.Put(ctx, name, version, data, token)
}
