//go:build unix

package filelock

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/must"
)

func BenchmarkBare(b *testing.B) {
	path := filepath.Join(b.TempDir(), "lock")
	for b.Loop() {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

func BenchmarkUncontended(b *testing.B) {
	s := must.Get(New(b.TempDir(), nil))
	defer s.Close()
	ctx := context.Background()
	c := exclusive("key")
	end := asks.Releases(c)
	b.ReportAllocs()
	for b.Loop() {
		if g, err := s.Acquire(ctx, c); err != nil || !g.OK {
			b.Fatal(g, err)
		}
		if errs := s.Release(ctx, end); errs != nil {
			b.Fatal(errs)
		}
	}
}

func BenchmarkLocker(b *testing.B) {
	locks := must.Get(holdfast.New(must.Get(New(b.TempDir(), nil)), nil))
	defer locks.Close()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		lock, err := locks.Lock(ctx, "key")
		if err != nil {
			b.Fatal(err)
		}
		if err := lock.Unlock(); err != nil {
			b.Fatal(err)
		}
	}
}
