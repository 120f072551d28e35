// Package rueidislock has the signatures of the library.
package rueidislock

import "context"

type Locker interface {
	WithContext(context.Context, string) (context.Context, context.CancelFunc, error)
	TryWithContext(context.Context, string) (context.Context, context.CancelFunc, error)
}

func NewLocker(any) (Locker, error) { return nil, nil }
