package dynamodblock

import (
	"context"
	"crypto/rand"

	"github.com/holdfast-go/holdfast/internal/conditional"
)

// canary begins the names of the items that prove writes. No prefix begins with a dot.
const canary = ".canary/"

// prove tests whether the engine keeps the conditions of writes, until the engine has passed once.
// The item that stays does so for a day or longer, so most later tests are refused writes.
func (r *register) prove(ctx context.Context) error {
	if r.proof.Passed() {
		return nil
	}
	present := canary + r.prefix
	return r.proof.Of(ctx, conditional.Writes{
		Put: func(ctx context.Context, name, version string) error {
			_, err := r.put(ctx, name, version, sample(), 0)
			return err
		},
		Present: present, Missing: present + "/" + rand.Text(), Unused: rand.Text(),
		Service: "the engine of table " + r.table, Record: "an item", Advice: "Use DynamoDB, or an engine with conditional writes",
	})
}

func sample() []byte {
	return []byte(`{"about":"holdfast writes this item to see whether the engine keeps the conditions of writes"}`)
}
