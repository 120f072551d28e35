package gcslock

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/objects"
)

// TokenKey is the metadata of an object that has the fencing token: x-goog-meta-holdfast-token.
const TokenKey = "holdfast-token"

// A Bucket is the bucket of a [fence.Object]. Make a Bucket with NewBucket. The version of an
// object is its generation, which never returns, so the data are stored as they are.
type Bucket struct{ guarded objects.Guarded }

var _ fence.Bucket = (*Bucket)(nil)

// NewBucket returns a bucket that exists. NewBucket does no I/O. Before the first write, the
// Bucket tests under Options.Prefix whether the service keeps the conditions of writes, as
// [Store.Check] describes. The client is as for [New]. Options.Look is not used.
func NewBucket(client *http.Client, name string, opts *Options) (*Bucket, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	r, err := register(client, name, o)
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
