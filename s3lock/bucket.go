package s3lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/fence"
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
	// Another program may have copied the metadata without the blanks.
	if nonce, err := strconv.ParseUint(o.metadata[NonceKey], 10, 64); err == nil {
		stored.Data = bytes.TrimSuffix(o.data, blanks(nonce))
	}
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
	nonce := rand.Uint64()
	_, err := b.register.put(ctx, name, version, slices.Concat(data, blanks(nonce)), map[string]string{
		TokenKey: strconv.FormatUint(token, 10),
		NonceKey: strconv.FormatUint(nonce, 10),
	})
	if errors.Is(err, caslock.ErrConflict) {
		return fmt.Errorf("%w: %w", fence.ErrChanged, err)
	}
	return err
}

// blanks returns a number as spaces and tabs.
func blanks(nonce uint64) []byte {
	text := fmt.Appendf(nil, "%064b", nonce)
	for i, digit := range text {
		text[i] = " \t"[digit-'0']
	}
	return text
}
