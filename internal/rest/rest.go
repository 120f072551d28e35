// Package rest pauses a goroutine that heeds a context.
package rest

import (
	"context"
	"time"
)

// For waits for d. If ctx ends sooner, For returns the error of ctx at once.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
