package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/carried"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// ErrChanged says that an object has another version than expected, so a [Bucket] has not
// written it.
var ErrChanged = errors.New("the object has another version")

// A Bucket is an object store with conditional writes. Packages s3lock, gcslock and azurelock have
// Buckets in Amazon S3, Google Cloud Storage and Azure Blob Storage.
// The methods may be called at the same time, and end with their context.
type Bucket interface {
	// Get returns an object, the zero Stored if there is none.
	Get(ctx context.Context, name string) (Stored, error)

	// Put writes data and token as one object, if the object has the given version. If version
	// is "", there must be no object. Otherwise Put returns an error that matches ErrChanged.
	Put(ctx context.Context, name, version string, data []byte, token uint64) error
}

// Stored is an object as a [Bucket] keeps it.
type Stored struct {
	// Version is "" if there is no object. Each write makes another version, even a write of the
	// same data: an ETag that is a digest of the data alone is no version.
	Version string
	Data    []byte
	Token   uint64 // in the metadata of the object; 0 if there is none
}

// An Object is one object in an object store, guarded by the fencing tokens of a lock. Each
// write stores the token beside the data, and replaces only the version that the write has
// checked. So the store itself refuses a write of a holder that was paused, even between the
// check and the write.
//
// All writers must use an Object, and nobody may delete the object: its token would be lost, and
// an earlier holder could write again. An Object is only a description, and may be copied.
type Object struct {
	Bucket Bucket
	Name   string
}

// Read returns the data of the object, nil if there is none, for the holder of the innermost
// lock that ctx carries. Take ctx from [holdfast.Locker.Do] or [holdfast.Lock.Context].
//
// Read also stores the token of the lock. From then on no earlier holder can write, so the data
// stay valid until a larger token comes. An outdated token is an [OutdatedError]. If there is no
// object, Read makes an empty object. Read sends a GET, and a PUT if the token is new.
//
// [holdfast.Locker.Do]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Locker.Do
// [holdfast.Lock.Context]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Lock.Context
func (o Object) Read(ctx context.Context) (data []byte, err error) {
	err = o.change(ctx, func(was Stored, token uint64) ([]byte, bool) {
		data = was.Data
		return data, was.Token < token
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Write replaces the data of the object, for the holder of the innermost lock that ctx carries.
// An outdated token is an [OutdatedError], and nothing is written. Metadata of the object that
// other programs have set are lost.
//
// If the answer of the store is lost, Write returns an error, and the data may be written now or
// later: call Write again. If ctx ends, Write returns the error of ctx.
func (o Object) Write(ctx context.Context, data []byte) error {
	return o.change(ctx, func(Stored, uint64) ([]byte, bool) { return data, true })
}

// change writes what next returns, unless next says that nothing has to be written.
func (o Object) change(ctx context.Context, next func(was Stored, token uint64) (data []byte, write bool)) error {
	key, token, err := carried.Token(ctx)
	if err != nil {
		return fmt.Errorf("fence: object %s: %w", shown.Key(o.Name), err)
	}
	if err := checkArguments(key, token); err != nil {
		return err
	}
	for longest := shortestPause; ; longest = min(2*longest, longestPause) {
		was, err := o.Bucket.Get(ctx, o.Name)
		if err != nil {
			return o.failed(token, err)
		}
		if was.Token > token {
			return &OutdatedError{Key: key, Token: token, Highest: was.Token}
		}
		data, write := next(was, token)
		if !write {
			return nil
		}
		refusal := o.Bucket.Put(ctx, o.Name, was.Version, data, token)
		if !errors.Is(refusal, ErrChanged) {
			return o.failed(token, refusal)
		}
		// Somebody else has written, or the bucket refuses every write.
		if err := rest.For(ctx, rand.N(longest)); err != nil {
			return o.failed(token, fmt.Errorf("%w: %w", err, refusal))
		}
	}
}

// A pause after a refused write takes up to shortestPause at first, and later up to longestPause.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = time.Second
)

func (o Object) failed(token uint64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fence: object %s, token %d: %w", shown.Key(o.Name), token, err)
}
