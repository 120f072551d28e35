package unlockerr

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	"github.com/holdfast-go/holdfast"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func deferred(mutex *redsync.Mutex) error {
	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.Unlock() // want `the error of Unlock is dropped`
	return nil
}

func statement(ctx context.Context, locks *holdfast.Locker) error {
	lock, err := locks.Lock(ctx, "key")
	if err != nil {
		return err
	}
	lock.Unlock() // want `the error of Unlock is dropped`
	return nil
}

func returned(mutex *redsync.Mutex) (err error) {
	if err := mutex.Lock(); err != nil {
		return err
	}
	defer func() {
		_, lost := mutex.Unlock()
		err = errors.Join(err, lost)
	}()
	return nil
}

func meant(ctx context.Context, locks *holdfast.Locker) error {
	lock, err := locks.Lock(ctx, "key")
	if err != nil {
		return err
	}
	_ = lock.Unlock()
	return nil
}

// An error of etcd's Unlock does not say that the lock was lost.
func silent(ctx context.Context, mutex *concurrency.Mutex) error {
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer mutex.Unlock(context.Background())
	return nil
}

func nowhere(mutex *redsync.Mutex) {
	if err := mutex.Lock(); err != nil {
		return
	}
	defer mutex.Unlock()
}
