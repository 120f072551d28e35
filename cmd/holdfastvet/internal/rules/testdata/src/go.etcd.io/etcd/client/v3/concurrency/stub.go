// Package concurrency has the signatures of the library.
package concurrency

import "context"

type Mutex struct{}

func (*Mutex) Lock(context.Context) error    { return nil }
func (*Mutex) TryLock(context.Context) error { return nil }
func (*Mutex) Unlock(context.Context) error  { return nil }

type Session struct{}

func (*Session) Close() error { return nil }

func NewSession(any, ...any) (*Session, error) { return nil, nil }

func NewMutex(*Session, string) *Mutex { return nil }

type Election struct{}

func NewElection(*Session, string) *Election { return nil }

func (*Election) Campaign(context.Context, string) error { return nil }
func (*Election) Resign(context.Context) error           { return nil }
