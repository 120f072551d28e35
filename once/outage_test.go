package once_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

// A silentServer keeps locks and records, and falls silent at Begin.
type silentServer struct {
	*memlock.Store
	once.Memory
}

func (s *silentServer) Close() error { return s.Store.Close() }

func (s *silentServer) Release(ctx context.Context, rs []driver.Release) []error {
	<-ctx.Done()
	return make([]error, len(rs))
}

func (s *silentServer) Begin(ctx context.Context, _ string, _ uint64, _ string, _ time.Duration) (once.Record, error) {
	<-ctx.Done()
	return once.Record{}, ctx.Err()
}

// A server that falls silent does not keep Begin beyond its context.
func TestBeginEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &silentServer{Store: memlock.New()}
		locks := must.Get(holdfast.New(server, nil))
		defer locks.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := once.Runner{Locks: locks, Records: server}.Begin(ctx, "key", "")
		if took := time.Since(start); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it took %v, and the context 1s: %v", took, err)
		}
	})
}
