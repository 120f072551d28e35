package deadctx

import (
	"context"
	"database/sql"
	"net/http"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func parameter(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	defer lock.Release(ctx) // want `the release fails if ctx has ended`
	return work(ctx)
}

func literal(ctx context.Context, mutex *redsync.Mutex) error {
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer func() {
		if _, err := mutex.UnlockContext(ctx); err != nil { // want `the release fails if ctx has ended`
			println(err.Error())
		}
	}()
	return work(ctx)
}

func request(r *http.Request, mutex *concurrency.Mutex) error {
	ctx := r.Context()
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer mutex.Unlock(ctx) // want `the release fails if ctx has ended`
	return work(ctx)
}

func requested(r *http.Request, mutex *concurrency.Mutex) error {
	if err := mutex.Lock(r.Context()); err != nil {
		return err
	}
	defer mutex.Unlock(r.Context()) // want `the release fails if r.Context\(\) has ended`
	return work(r.Context())
}

func timeout(mutex *concurrency.Mutex) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer mutex.Unlock(ctx) // want `the release fails if ctx has ended`
	return work(ctx)
}

func derivedLate(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		lock.Release(ctx) // want `the release fails if ctx has ended`
	}()
	return work(ctx)
}

func session(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(1)"); err != nil {
		return err
	}
	defer conn.ExecContext(ctx, "SELECT pg_advisory_unlock(1)") // want `the release fails if ctx has ended`
	return work(ctx)
}

func detached(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return work(ctx)
}

func background(client *redislock.Client) error {
	ctx := context.Background()
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return work(ctx)
}

func fresh(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		lock.Release(ctx)
	}()
	return work(ctx)
}

func ignored(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	//holdfast:ignore the TTL is a second
	defer lock.Release(ctx)
	return work(ctx)
}

func ignoredWithoutReason(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	//holdfast:ignore
	defer lock.Release(ctx) // want `the comment //holdfast:ignore needs a reason`
	return work(ctx)
}

func circle(client *redislock.Client) error {
	ctx := context.Background()
	other := ctx
	ctx = other
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return work(ctx)
}

func declared(r *http.Request, mutex *concurrency.Mutex) error {
	var ctx = r.Context()
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer mutex.Unlock(ctx) // want `the release fails if ctx has ended`
	return work(ctx)
}

func atOnce(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	defer println(lock.Release(ctx) == nil)
	return work(ctx)
}

func work(context.Context) error { return nil }
