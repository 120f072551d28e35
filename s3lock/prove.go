package s3lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// canary begins the names of the objects that prove writes. Names of keys have no dots.
const canary = ".canary"

// prove tests whether the bucket keeps the conditions of writes, until the bucket has
// passed once. The first test creates an object that stays. So every later test is three writes
// that the bucket refuses.
func (r *register) prove(ctx context.Context) error {
	if r.proved.Load() {
		return nil
	}
	// missing was never there, not even as the remains of an earlier test.
	present, missing := r.prefix+canary, r.prefix+canary+"-"+rand.Text()
	_, err := r.put(ctx, present, "", sample(), nil)
	if err != nil && !errors.Is(err, caslock.ErrConflict) {
		return unsupported(err)
	}
	created := err == nil
	old := madeUp()
	tests := []struct {
		name, version, promise string
		skip                   bool
	}{
		{present, "", "it created an object that was there (If-None-Match: *)", !created},
		{present, old, "it replaced an object that had another version (If-Match)", false},
		{missing, old, "it replaced an object that was not there (If-Match)", false},
	}
	errs := make([]error, len(tests))
	var all sync.WaitGroup
	for i, t := range tests {
		if !t.skip {
			all.Go(func() { _, errs[i] = r.put(ctx, t.name, t.version, sample(), nil) })
		}
	}
	all.Wait()
	var broken []string
	for i, t := range tests {
		switch err := errs[i]; {
		case t.skip || errors.Is(err, caslock.ErrConflict):
		case err != nil:
			return unsupported(err)
		default:
			broken = append(broken, t.promise)
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("%w: the bucket %s ignores the conditions of writes, so its locks would have several holders: %s. Use a service with conditional writes",
			driver.ErrInvalid, r.bucket, strings.Join(broken, "; "))
	}
	r.proved.Store(true)
	return nil
}

// unsupported says what it means if a service refuses every condition.
func unsupported(err error) error {
	if errors.Is(err, driver.ErrInvalid) {
		return fmt.Errorf("%w: the service may have no conditional writes, which locks need", err)
	}
	return err
}

// madeUp returns an ETag that no object has had. The ETag looks like a digest, since a service may
// refuse every other ETag as malformed.
func madeUp() string {
	var digest [16]byte
	rand.Read(digest[:])
	return fmt.Sprintf(`"%x"`, digest)
}

func sample() []byte {
	return fmt.Appendf(nil, `{"about":"holdfast writes this object to see whether the bucket keeps the conditions of writes","nonce":%q}`, rand.Text())
}
