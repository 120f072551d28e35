package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/fence"
)

// A Guarded is the bucket of a [fence.Object]. The fencing token is in the metadata TokenKey.
//
// If the version of an object is a digest of its data, a version may return. Then Nonce names the
// metadata with the number of the write, in decimal: Put appends the number as 64 spaces and tabs,
// which are 0 and 1 from the highest bit on, and Get removes them. JSON and most other text stay
// readable for other programs.
type Guarded struct {
	Register *Register
	Token    string // the metadata with the fencing token
	Nonce    string // the metadata with the number of the write; "" if versions never return
}

var _ fence.Bucket = Guarded{}

// Get implements [fence.Bucket].
func (g Guarded) Get(ctx context.Context, name string) (fence.Stored, error) {
	o, err := g.Register.bucket.Get(ctx, name)
	if err != nil || o.Version == "" {
		return fence.Stored{}, err
	}
	stored := fence.Stored{Version: o.Version, Data: o.Data}
	// Another program may have copied the metadata without the blanks.
	if nonce, err := strconv.ParseUint(o.Metadata[g.Nonce], 10, 64); err == nil {
		stored.Data = bytes.TrimSuffix(o.Data, blanks(nonce))
	}
	if text, found := o.Metadata[g.Token]; found {
		if stored.Token, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fence.Stored{}, fmt.Errorf("%s/%s: the metadata %s is %.40q, and no number", g.Register.bucket, name, g.Token, text)
		}
	}
	return stored, nil
}

// Put implements [fence.Bucket]. Before the first write, Put tests the bucket as
// [Register.Check] does.
func (g Guarded) Put(ctx context.Context, name, version string, data []byte, token uint64) error {
	if err := g.Register.prove(ctx); err != nil {
		return err
	}
	metadata := map[string]string{g.Token: strconv.FormatUint(token, 10)}
	if g.Nonce != "" {
		nonce := rand.Uint64()
		metadata[g.Nonce] = strconv.FormatUint(nonce, 10)
		data = slices.Concat(data, blanks(nonce))
	}
	_, err := g.Register.bucket.Put(ctx, name, version, data, metadata)
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
