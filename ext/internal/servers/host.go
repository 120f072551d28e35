package servers

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// ErrMissing says that a server is not installed.
var ErrMissing = errors.New("not installed")

// A Host is the TB of servers that no test stands for: those of a whole package,
// or of a command. What goes wrong with one of them is a panic, which Try turns
// into an error. The zero value is ready to use.
type Host struct {
	mu       sync.Mutex
	cleanups []func()
	failed   bool
}

// A trouble is what a Host panics with.
type trouble struct{ error }

// Try calls f, which may start servers and use those of the Host, and returns
// what goes wrong with them. A server that is not installed is ErrMissing.
func (h *Host) Try(f func()) (err error) {
	defer func() {
		switch seen := recover().(type) {
		case nil:
		case trouble:
			err = seen.error
		default:
			panic(seen)
		}
	}()
	f()
	return nil
}

// Close ends the servers and removes their folders, and returns what goes wrong
// with them.
func (h *Host) Close() (err error) {
	h.mu.Lock()
	all := h.cleanups
	h.cleanups = nil
	h.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		err = errors.Join(err, h.Try(all[i]))
	}
	return err
}

// Helper does nothing.
func (h *Host) Helper() {}

// Failed reports whether servers should tell what they have said.
func (h *Host) Failed() bool { return h.failed }

// Logf writes to stderr.
func (h *Host) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Fatalf ends Try with an error.
func (h *Host) Fatalf(format string, args ...any) { panic(trouble{fmt.Errorf(format, args...)}) }

// Skipf ends Try with an ErrMissing.
func (h *Host) Skipf(format string, args ...any) {
	panic(trouble{fmt.Errorf("%w: %s", ErrMissing, fmt.Sprintf(format, args...))})
}

// Cleanup adds to what Close does, before what was added earlier.
func (h *Host) Cleanup(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cleanups = append(h.cleanups, f)
}

// TempDir makes a folder that Close removes.
func (h *Host) TempDir() string {
	dir, err := os.MkdirTemp("", "servers")
	if err != nil {
		h.Fatalf("make a folder: %v", err)
	}
	h.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Missing ends a test whose server is not installed, as a Host has found out, just
// as a server that is started for the test alone does.
func Missing(tb TB, err error) {
	tb.Helper()
	switch {
	case !errors.Is(err, ErrMissing):
	case os.Getenv("HOLDFAST_TEST_ALL") != "":
		tb.Fatalf("%v", err)
	default:
		tb.Skipf("%v", err)
	}
}
