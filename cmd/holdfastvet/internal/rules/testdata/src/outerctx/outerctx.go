package outerctx

import (
	"context"
	"log/slog"
	"os"

	"cirello.io/pglock"
	wrapper "example.com/leaderelection"
	"github.com/holdfast-go/holdfast"
	"github.com/redis/rueidis/rueidislock"
	"k8s.io/client-go/tools/leaderelection"
)

func do(ctx context.Context, locks *holdfast.Locker) error {
	return locks.Do(ctx, "key", func(context.Context) error {
		return work(ctx) // want `ctx does not end when the lock is lost`
	})
}

func doInner(ctx context.Context, locks *holdfast.Locker) error {
	return locks.Do(ctx, "key", func(inner context.Context) error {
		slog.InfoContext(ctx, "begin")
		defer work(ctx)
		return work(inner)
	})
}

func copied(ctx context.Context, locks *holdfast.Locker) error {
	caller := ctx
	return locks.Do(ctx, "key", func(ctx context.Context) error {
		if err := work(ctx); err != nil {
			return work(caller)
		}
		return nil
	})
}

func table(ctx context.Context, client *pglock.Client) error {
	return client.Do(ctx, "key", func(held context.Context, _ *pglock.Lock) error {
		return work(ctx) // want `ctx does not end when the lock is lost`
	})
}

func lead(ctx context.Context) {
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				work(ctx) // want `ctx does not end when the lock is lost`
			},
			OnStoppedLeading: func() { println("lost") },
		},
	})
}

func leadOrExit(ctx context.Context) {
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { work(ctx) },
			OnStoppedLeading: func() { os.Exit(1) },
		},
	})
}

func leadOrCancel(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { work(ctx) },
			OnStoppedLeading: cancel,
		},
	})
}

func leadOnce(ctx context.Context) {
	elected, cancel := context.WithCancel(ctx)
	leaderelection.RunOrDie(elected, leaderelection.LeaderElectionConfig{
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				work(ctx)
				cancel()
			},
			OnStoppedLeading: func() { println("lost") },
		},
	})
}

func wrapped(ctx context.Context) {
	wrapper.New("job", func(context.Context) {
		work(ctx) // want `ctx does not end when the lock is lost`
	}, nil)
}

func drop(ctx context.Context, locker rueidislock.Locker) error {
	_, cancel, err := locker.WithContext(ctx, "key") // want `the context of WithContext ends when the lock is lost`
	if err != nil {
		return err
	}
	defer cancel()
	return work(ctx)
}

func keep(ctx context.Context, locker rueidislock.Locker) error {
	ctx, cancel, err := locker.WithContext(ctx, "key")
	if err != nil {
		return err
	}
	defer cancel()
	return work(ctx)
}

func nested(ctx context.Context, locks *holdfast.Locker) error {
	return locks.Do(ctx, "a", func(a context.Context) error {
		return locks.Do(a, "b", func(context.Context) error {
			if err := work(a); err != nil { // want `a does not end when the lock is lost`
				return err
			}
			return work(ctx) // want `ctx does not end when the lock is lost`
		})
	})
}

func meant(ctx context.Context, locks *holdfast.Locker) error {
	return locks.Do(ctx, "key", func(inner context.Context) error {
		if spanFromContext(ctx) != nil {
			return work(context.WithoutCancel(ctx))
		}
		return work(inner)
	})
}

func endless(ctx context.Context, locks *holdfast.Locker) error {
	return locks.Do(ctx, "key", func(inner context.Context) error {
		defer work(context.Background())
		bounded, cancel := context.WithTimeout(context.Background(), 1)
		defer cancel()
		if err := work(bounded); err != nil {
			return err
		}
		return work(context.Background()) // want `context.Background\(\) does not end when the lock is lost`
	})
}

func declared(ctx context.Context, locker rueidislock.Locker) {
	var _, cancel, err = locker.WithContext(ctx, "key") // want `the context of WithContext ends when the lock is lost`
	if err == nil {
		cancel()
	}
}

func spanFromContext(context.Context) any { return nil }

func work(context.Context) error { return nil }
