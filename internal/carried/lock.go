// Package carried is how a context carries a lock, for packages that read the token of
// the lock but do not import the engine.
package carried

import (
	"context"
	"errors"
)

// Innermost is the key of the innermost lock in a context. The engine sets its value.
type Innermost struct{}

// Token returns the key and the fencing token of the innermost lock that ctx carries.
// The error says that there is none, or why the lock has ended. The token is 0 if the
// store of the lock has no tokens.
func Token(ctx context.Context) (key string, token uint64, err error) {
	lock, ok := ctx.Value(Innermost{}).(interface {
		Key() string
		Fence() uint64
		Err() error
	})
	if !ok {
		return "", 0, errors.New("the context carries no lock: pass the one of Locker.Do or Lock.Context")
	}
	key, token = lock.Key(), lock.Fence()
	return key, token, lock.Err() // after Fence, which returns 0 from the end of the lock on
}
