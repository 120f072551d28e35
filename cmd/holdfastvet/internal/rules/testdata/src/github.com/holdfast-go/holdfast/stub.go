// Package holdfast has the signatures of the library.
package holdfast

import "context"

type Locker struct{}

func (*Locker) Lock(context.Context, string) (*Lock, error)                   { return nil, nil }
func (*Locker) TryLock(context.Context, string) (*Lock, error)                { return nil, nil }
func (*Locker) Do(context.Context, string, func(context.Context) error) error { return nil }

type Lock struct{}

func (*Lock) Unlock() error { return nil }
func (*Lock) Fence() uint64 { return 0 }
