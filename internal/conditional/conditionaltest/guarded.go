package conditionaltest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A stalling bucket does something else before its next write.
type stalling struct {
	fence.Bucket
	before func()
}

func (s *stalling) Put(ctx context.Context, name, version string, data []byte, token uint64) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Bucket.Put(ctx, name, version, data, token)
}

// Guarded has a holder stall between its check and its write. The holder loses its lock, and is
// refused by the bucket, even if the next holder has written the data of before.
func Guarded(t *testing.T, bucket fence.Bucket, locks *holdfast.Locker, prefix string) {
	for _, next := range []string{"second", "first"} {
		guarded(t, bucket, locks, fmt.Sprintf("%s/state of prod+%s.json", prefix, next), next)
	}
}

func guarded(t *testing.T, bucket fence.Bucket, locks *holdfast.Locker, name, next string) {
	under := func(do func(ctx context.Context)) {
		t.Helper()
		l, err := servers.Patient(t.Context(), locks.Lock, "state")
		if err != nil {
			t.Fatal(err)
		}
		do(l.Context(t.Context()))
		l.Unlock()
	}
	stall := &stalling{Bucket: bucket}
	object := fence.Object{Bucket: stall, Name: name}
	under(func(ctx context.Context) {
		if data, err := object.Read(ctx); err != nil || len(data) != 0 {
			t.Fatalf("%q, %v; want no object", data, err)
		}
		if err := object.Write(ctx, []byte("first")); err != nil {
			t.Error(err)
		}
		stall.before = func() {
			// Somebody breaks the lock, and the next holder writes.
			holders := servers.Insist(t, func(ctx context.Context) ([]holdfast.Holder, error) { return locks.Holders(ctx, "state") })
			if len(holders) != 1 {
				t.Fatalf("%+v, want one holder", holders)
			}
			asked := false
			servers.Insist(t, func(ctx context.Context) (any, error) {
				err := locks.Break(ctx, "state", holders[0].ID)
				if asked && errors.Is(err, holdfast.ErrLost) { // by a break without an answer
					err = nil
				}
				asked = true
				return nil, err
			})
			under(func(ctx context.Context) {
				if data, err := object.Read(ctx); err != nil || string(data) != "first" {
					t.Errorf("%q, %v; want what the earlier holder has written", data, err)
				}
				if err := object.Write(ctx, []byte(next)); err != nil {
					t.Error(err)
				}
			})
		}
		if err := object.Write(context.WithoutCancel(ctx), []byte("late")); !errors.Is(err, fence.ErrOutdated) {
			t.Errorf("a stalled write returned %v, want ErrOutdated", err)
		}
	})
	got, err := bucket.Get(t.Context(), name)
	if err != nil || string(got.Data) != next || got.Token == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := bucket.Put(t.Context(), name, "", nil, got.Token); !errors.Is(err, fence.ErrChanged) {
		t.Errorf("created an object that is there: %v", err)
	}
}

// SameData has each write make another version. So a stalled write is refused although the next
// holder has only read, or has written the data of before.
func SameData(t *testing.T, bucket fence.Bucket) {
	for _, data := range []string{"", "same", "{}\n \t"} {
		name := strings.ToLower(rand.Text())
		if err := bucket.Put(t.Context(), name, "", []byte(data), 33); err != nil {
			t.Fatal(err)
		}
		was, err := bucket.Get(t.Context(), name)
		if err != nil || string(was.Data) != data || was.Token != 33 {
			t.Fatalf("%+v, %v; want %q", was, err, data)
		}
		if err := bucket.Put(t.Context(), name, was.Version, []byte(data), 34); err != nil {
			t.Fatal(err)
		}
		if err := bucket.Put(t.Context(), name, was.Version, []byte("late"), 33); !errors.Is(err, fence.ErrChanged) {
			t.Errorf("a stalled write after %q returned %v, want ErrChanged", data, err)
		}
		if got, err := bucket.Get(t.Context(), name); err != nil || string(got.Data) != data || got.Token != 34 {
			t.Errorf("%+v, %v; want %q of token 34", got, err, data)
		}
	}
}
