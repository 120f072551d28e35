package objects

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional"
)

// canary begins the names of the objects that prove writes. Names of keys have no dots.
const canary = ".canary"

// prove tests whether the bucket keeps the conditions of writes, until the bucket has passed once.
func (r *Register) prove(ctx context.Context) error {
	if r.proof.Passed() {
		return nil
	}
	present := r.prefix + canary
	return r.proof.Of(ctx, conditional.Writes{
		Put: func(ctx context.Context, name, version string) error {
			_, err := r.bucket.Put(ctx, name, version, sample(), nil)
			if errors.Is(err, driver.ErrInvalid) {
				err = fmt.Errorf("%w: the service may have no conditional writes, which locks need", err)
			}
			return err
		},
		Present: present, Missing: present + "-" + rand.Text(), Unused: r.bucket.Unused(),
		Service: "the bucket " + r.bucket.String(), Record: "an object", Advice: "Use a service with conditional writes",
	})
}

func sample() []byte {
	return fmt.Appendf(nil, `{"about":"holdfast writes this object to see whether the bucket keeps the conditions of writes","nonce":%q}`, rand.Text())
}
