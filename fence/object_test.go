package fence_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/carried"
)

// A shelf is a bucket in memory.
type shelf struct {
	mu      sync.Mutex
	objects map[string]fence.Stored
	writes  int
	before  func() // a write; nil for nothing
}

func (s *shelf) Get(ctx context.Context, name string) (fence.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[name], ctx.Err()
}

func (s *shelf) Put(_ context.Context, name, version string, data []byte, token uint64) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[name].Version != version {
		return fence.ErrChanged
	}
	if s.objects == nil {
		s.objects = make(map[string]fence.Stored)
	}
	s.writes++
	s.objects[name] = fence.Stored{Version: strconv.Itoa(s.writes), Data: bytes.Clone(data), Token: token}
	return nil
}

// A lock is a lock in a context.
type lock struct{ token uint64 }

func (lock) Key() string     { return "key" }
func (l lock) Fence() uint64 { return l.token }
func (l lock) Err() error    { return nil }

func holding(t *testing.T, token uint64) context.Context {
	return context.WithValue(t.Context(), carried.Innermost{}, lock{token})
}

func TestObject(t *testing.T) {
	s := &shelf{}
	o := fence.Object{Bucket: s, Name: "state"}
	data, err := o.Read(holding(t, 33))
	if err != nil || data != nil {
		t.Fatalf("%q, %v", data, err)
	}
	if err := o.Write(holding(t, 33), []byte("first")); err != nil {
		t.Error(err)
	}
	for range 2 { // The second read finds its own token.
		if data, err := o.Read(holding(t, 34)); err != nil || string(data) != "first" {
			t.Errorf("%q, %v", data, err)
		}
	}
	if s.writes != 3 {
		t.Errorf("%d writes, want one for each token and one for the data", s.writes)
	}
	var outdated *fence.OutdatedError
	if err := o.Write(holding(t, 33), []byte("late")); !errors.Is(err, fence.ErrOutdated) || !errors.As(err, &outdated) || outdated.Highest != 34 {
		t.Errorf("%v, want that token 34 was seen", err)
	}
	if _, err := o.Read(holding(t, 33)); !errors.Is(err, fence.ErrOutdated) {
		t.Errorf("%v, want ErrOutdated", err)
	}
}

// A holder that stalls between its check and its write is refused by the bucket.
func TestObjectOfAStalledWriter(t *testing.T) {
	s := &shelf{}
	o := fence.Object{Bucket: s, Name: "state"}
	s.before = func() {
		if err := o.Write(holding(t, 34), []byte("next")); err != nil {
			t.Error(err)
		}
	}
	if err := o.Write(holding(t, 33), []byte("late")); !errors.Is(err, fence.ErrOutdated) {
		t.Errorf("%v, want ErrOutdated", err)
	}
	if got := string(s.objects["state"].Data); got != "next" {
		t.Errorf("the object is %q", got)
	}
}

// A holder whose write meets that of an earlier holder writes after it.
func TestObjectAfterAnEarlierWriter(t *testing.T) {
	s := &shelf{}
	o := fence.Object{Bucket: s, Name: "state"}
	s.before = func() {
		if err := o.Write(holding(t, 33), []byte("first")); err != nil {
			t.Error(err)
		}
	}
	if data, err := o.Read(holding(t, 34)); err != nil || string(data) != "first" {
		t.Errorf("%q, %v; want what the earlier holder has written", data, err)
	}
}

// A bucket that refuses every write is asked less and less often.
func TestObjectInABucketThatAlwaysRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refusing{}
		ctx, cancel := context.WithTimeout(holding(t, 33), time.Minute)
		defer cancel()
		err := fence.Object{Bucket: r, Name: "state"}.Write(ctx, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fence.ErrChanged) {
			t.Errorf("%v, want the end of the context and ErrChanged", err)
		}
		if r.puts > 500 {
			t.Errorf("%d writes in a minute", r.puts)
		}
	})
}

// A refusing bucket writes nothing.
type refusing struct{ puts int }

func (r *refusing) Get(ctx context.Context, _ string) (fence.Stored, error) {
	return fence.Stored{}, ctx.Err()
}

func (r *refusing) Put(ctx context.Context, _, _ string, _ []byte, _ uint64) error {
	if r.puts++; r.puts > 10_000 {
		return errors.New("too many writes")
	}
	return fence.ErrChanged
}

func TestObjectRefuses(t *testing.T) {
	o := fence.Object{Bucket: &shelf{}, Name: "state"}
	if err := o.Write(t.Context(), nil); err == nil {
		t.Error("wrote without a lock")
	}
	if err := o.Write(holding(t, 0), nil); err == nil {
		t.Error("wrote with token 0")
	}
	ctx, cancel := context.WithCancel(holding(t, 1))
	cancel()
	if err := o.Write(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context has ended", err)
	}
}
