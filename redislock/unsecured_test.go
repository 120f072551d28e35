package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestOpenTLSWithoutTLS speaks TLS to a server that waits for the rest of a command.
func TestOpenTLSWithoutTLS(t *testing.T) {
	t.Parallel()
	_, err := driver.Open(t.Context(), "rediss://"+servers.StartRedis(t).Addr())
	if err == nil || !strings.Contains(err.Error(), "redis://") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that the server speaks no TLS", err)
	}
}
