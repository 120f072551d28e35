package idlefence

import (
	"context"
	"log"
	"log/slog"

	"github.com/holdfast-go/holdfast"
)

func logged(ctx context.Context, locks *holdfast.Locker) error {
	lock, err := locks.Lock(ctx, "key")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	log.Print("token ", lock.Fence()) // want `the fencing token reaches no write`
	return nil
}

func variable(ctx context.Context, lock *holdfast.Lock) {
	token := lock.Fence() // want `the fencing token reaches no write`
	slog.Info("held", "token", int64(token))
	_ = token
}
