// Package odd has code that a rule may stumble over, and no misuse.
package odd

import (
	"context"
	"database/sql"

	"cirello.io/pglock"
	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"k8s.io/client-go/tools/leaderelection"
)

func outside(*redsync.Mutex) error

func _(mutex *redsync.Mutex) error { return mutex.Lock() }

var atPackageLevel = func(mutex *redsync.Mutex) error {
	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.Unlock()
	return nil
}

var err = new(redsync.Redsync).NewMutex("key").Lock()

type locked[M interface{ Lock() error }] struct{ mutex M }

func (l *locked[M]) lock() error { return l.mutex.Lock() }

func instance(l *locked[*redsync.Mutex]) error { return l.lock() }

func expression(mutex *redsync.Mutex) error {
	lock, unlock := (*redsync.Mutex).Lock, (*redsync.Mutex).Unlock
	if err := lock(mutex); err != nil {
		return err
	}
	_, err := unlock(mutex)
	return err
}

func called(mutex *redsync.Mutex) error {
	if err := (*redsync.Mutex).Lock(mutex); err != nil {
		return err
	}
	_, err := (*redsync.Mutex).Unlock(mutex)
	return err
}

func methodValue(mutex *redsync.Mutex) error {
	if err := mutex.Lock(); err != nil {
		return err
	}
	unlock := mutex.Unlock
	defer unlock()
	return nil
}

func parens(mutex *redsync.Mutex) error {
	if err := ((mutex).Lock)(); (err) != (nil) {
		return err
	}
	defer (mutex.Unlock)()
	return nil
}

func nested(mutexes []*redsync.Mutex) error {
	if err := mutexes[0].Lock(); err != nil {
		return err
	}
	defer func() { defer func() { mutexes[0].Unlock() }() }()
	return nil
}

func endless(mutex *redsync.Mutex) {
again:
	if mutex.Lock() != nil {
		goto again
	}
	defer mutex.Unlock()
	select {}
}

func channels(ctx context.Context, mutex *redsync.Mutex, work <-chan func() error) error {
	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.Unlock()
	for {
		select {
		case do, ok := <-work:
			if !ok {
				return nil
			}
			switch err := do(); err.(type) {
			case nil:
			default:
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func dead(mutex *redsync.Mutex) error {
	panic("not written")
	if err := mutex.Lock(); err != nil {
		return err
	}
	mutex.Unlock()
	return nil
}

func spread(client *pglock.Client, lock func() (string, error)) (*pglock.Lock, error) {
	return client.Acquire(first(lock()))
}

func first(key string, _ error) string { return key }

func positional(run func(context.Context)) leaderelection.LeaderCallbacks {
	return leaderelection.LeaderCallbacks{run, func() {}}
}

func short(conn *sql.Conn) { conn.ExecContext(context.Background(), "") }

func unnamed(context.Context, *redislock.Client) {
	func(...any) {}()
}
