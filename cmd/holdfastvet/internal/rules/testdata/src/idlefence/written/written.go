package written

import (
	"context"
	"log"

	"github.com/holdfast-go/holdfast"
)

func write(ctx context.Context, lock *holdfast.Lock) error {
	token := lock.Fence()
	log.Print("token ", token)
	return save(ctx, token)
}

func logged(lock *holdfast.Lock) { log.Print("token ", lock.Fence()) }

func save(context.Context, uint64) error { return nil }
