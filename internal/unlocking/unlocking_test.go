package unlocking_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/memlock"
)

func TestRelease(t *testing.T) {
	late := fmt.Errorf("the store has not answered: %w", os.ErrDeadlineExceeded)
	for _, c := range []struct{ unlocked, want error }{
		{nil, nil},
		{late, nil},
		{&holdfast.LostError{Err: late}, holdfast.ErrLost},
		{holdfast.ErrReleased, holdfast.ErrReleased},
		{context.DeadlineExceeded, context.DeadlineExceeded},
	} {
		if err := unlocking.Release(func() error { return c.unlocked }); !errors.Is(err, c.want) {
			t.Errorf("unlocked with %v: %v, want %v", c.unlocked, err, c.want)
		}
	}
}

// TestAtOnce has a lock that is lost before its deadline.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := must.Get(holdfast.New(memlock.New(), nil))
		defer locks.Close()
		lock := must.Get(locks.Lock(t.Context(), "key"))
		if err := locks.Break(t.Context(), "key", lock.ID()); err != nil {
			t.Fatal(err)
		}
		<-lock.Done()
		if err := unlocking.AtOnce(lock); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("%v, want ErrLost", err)
		}
	})
}
