// Package redsync has the signatures of the library.
package redsync

import (
	"context"
	"time"
)

type Redsync struct{}

type Option interface{ apply() }

func WithExpiry(time.Duration) Option { return nil }

func WithTries(int) Option { return nil }

func (*Redsync) NewMutex(string, ...Option) *Mutex { return nil }

type Mutex struct{}

func (*Mutex) Lock() error                                 { return nil }
func (*Mutex) TryLock() error                              { return nil }
func (*Mutex) LockContext(context.Context) error           { return nil }
func (*Mutex) Unlock() (bool, error)                       { return true, nil }
func (*Mutex) UnlockContext(context.Context) (bool, error) { return true, nil }
func (*Mutex) Extend() (bool, error)                       { return true, nil }
func (*Mutex) TryLockContext(context.Context) error        { return nil }
func (*Mutex) ExtendContext(context.Context) (bool, error) { return true, nil }

func New(...any) *Redsync { return nil }
