package bounded

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestWithin(t *testing.T) {
	if got := Within(t.Context(), func() int { return 1 }); got != 1 {
		t.Errorf("got %d, want what f returns", got)
	}
}

func TestWithinEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		goOn, ended := make(chan int), false
		if got := Within(ctx, func() int { defer func() { ended = true }(); return <-goOn }); got != 0 || ended {
			t.Errorf("got %d, want 0 while f goes on", got)
		}
		goOn <- 1
		synctest.Wait()
		if !ended {
			t.Error("f has not ended in the background")
		}
	})
}

func TestWithinNeedsNoGoroutineForAContextThatCannotEnd(t *testing.T) {
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { Within(ctx, func() int { return 1 }) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
