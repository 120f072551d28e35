package filelock

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

func TestNotifyOfARemovedFile(t *testing.T) {
	a, _ := pair(t, false)
	losses := make(chan error, 10)
	a.Notify(func(key, id string, err error) { losses <- err })
	c := exclusive("key")
	a.granted(c)
	a.must(os.Remove(a.path("key")))
	if err := receive(t, losses, "the loss"); !errors.Is(err, driver.ErrLost) {
		t.Errorf("told %v, want ErrLost", err)
	}
}

// With the directory, the events end; looking goes on.
func TestWatchOutlivesTheDirectory(t *testing.T) {
	a, b := pair(t, false)
	first := waiting(exclusive("key"))
	a.granted(exclusive("key"))
	b.refused(first)
	wakes := b.watch(first)
	b.must(os.RemoveAll(a.dir))
	receive(t, wakes, "a wake when the file is gone")

	holder, next := exclusive("key"), waiting(exclusive("key"))
	a.granted(holder)
	b.refused(next)
	wakes, asked := b.watch(next), time.Now()
	b.refused(next)
	a.release(holder)
	for inTime(t, asked) && !receive(t, wakes, "a wake that leads to the grant").OK && !b.acquire(next).OK {
	}
}
