package objects

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional"
	"github.com/holdfast-go/holdfast/internal/filename"
)

// A Register keeps a record of each key in an object of a Bucket.
type Register struct {
	bucket Bucket
	prefix string
	proof  conditional.Proof
}

var (
	_ caslock.Register = (*Register)(nil)
	_ caslock.Clock    = (*Register)(nil)
)

// New returns a Register of a bucket.
func New(b Bucket, o Options) *Register { return &Register{bucket: b, prefix: o.prefix()} }

// name is the name of the object of a key.
func (r *Register) name(key string) string { return r.prefix + filename.Of("", key) }

// Read implements [caslock.Register].
func (r *Register) Read(ctx context.Context, key string) (caslock.Record, error) {
	return r.record(ctx, r.name(key))
}

func (r *Register) record(ctx context.Context, name string) (caslock.Record, error) {
	o, err := r.bucket.Get(ctx, name)
	return caslock.Record{Version: o.Version, Data: o.Data}, err
}

// Swap implements [caslock.Register]. Before the first swap, Swap tests the bucket as
// [Register.Check] does.
func (r *Register) Swap(ctx context.Context, key, version string, data []byte, _ time.Duration) (next string, err error) {
	if err := r.prove(ctx); err != nil {
		return "", fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	}
	return r.bucket.Put(ctx, r.name(key), version, data, nil)
}

// Now implements [caslock.Clock].
func (r *Register) Now(ctx context.Context) (time.Time, error) { return r.bucket.Now(ctx) }

// Check writes two objects with conditions that do not hold, and returns [driver.ErrInvalid] if
// the bucket accepts one of the writes, or if there is no bucket. A bucket that has passed is not
// tested again.
func (r *Register) Check(ctx context.Context) error {
	err := r.prove(ctx)
	if errors.Is(err, ErrNoBucket) {
		return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	return err
}

// readers is how many objects List reads at the same time.
const readers = 16

// List implements [caslock.Register].
func (r *Register) List(ctx context.Context, prefix string) iter.Seq2[caslock.Record, error] {
	return func(yield func(caslock.Record, error) bool) {
		var names []string
		for name, err := range r.bucket.List(ctx, r.prefix+filename.Start(prefix)) {
			if err != nil {
				yield(caslock.Record{}, err)
				return
			}
			if strings.HasPrefix(name, r.prefix+canary) {
				continue
			}
			if names = append(names, name); len(names) < 4*readers {
				continue
			}
			if !r.yieldAll(ctx, names, yield) {
				return
			}
			names = names[:0]
		}
		r.yieldAll(ctx, names, yield)
	}
}

// yieldAll yields the records of the objects that are still there. false means to stop.
func (r *Register) yieldAll(ctx context.Context, names []string, yield func(caslock.Record, error) bool) bool {
	records, errs := make([]caslock.Record, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	room := make(chan struct{}, readers)
	for i, name := range names {
		room <- struct{}{} // Every read ends with ctx.
		all.Go(func() {
			records[i], errs[i] = r.record(ctx, name)
			<-room
		})
	}
	all.Wait()
	for i, record := range records {
		if record.Version == "" && errs[i] == nil {
			continue // removed meanwhile
		}
		if !yield(record, errs[i]) || errs[i] != nil {
			return false
		}
	}
	return true
}
