package filelock

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/flock"
)

// TestNoDescriptorLeft leaves the process no descriptors but those of idle lock files: the
// Store closes these to see that a session has ended, to begin one, and to receive events.
func TestNoDescriptorLeft(t *testing.T) {
	dir := t.TempDir()
	u, v := in(t, dir, nil), in(t, dir, nil)
	v.granted(exclusive("key"))
	u.refused(exclusive("key")) // opens the file
	// The first claim of a Store looks through the folder.
	u.background.Wait()
	v.background.Wait()
	var old syscall.Rlimit
	u.must(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	low := old
	low.Cur = uint64(openFiles(t) + 20)
	u.must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	defer func() { u.must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)) }()
	fill := func(idle string) {
		for i := range 5 {
			c := exclusive(fmt.Sprint(idle, i))
			u.granted(c)
			u.release(c)
		}
		for {
			f, err := os.Open(os.DevNull)
			if err != nil {
				return
			}
			t.Cleanup(func() { f.Close() })
		}
	}

	flock.Unlock(uintptr(v.session.Load().h)) // as if the process had ended
	fill("a")
	u.granted(exclusive("key"))

	fill("b")
	u.must(os.Remove(u.sessionPath(u.session.Load().id)))
	u.after()
	u.granted(exclusive("b0"))

	fill("c")
	if _, err := u.Watch(t.Context(), exclusive("key").Claim, func(driver.Grant) {}); err != nil {
		t.Fatal(err)
	}
	u.watcher.mu.Lock()
	defer u.watcher.mu.Unlock()
	if u.watcher.events == nil {
		t.Error("the Store polls for good")
	}
}
