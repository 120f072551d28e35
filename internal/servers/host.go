package servers

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// ErrMissing says that a server is not installed.
var ErrMissing = errors.New("not installed")

// A Host is the TB of servers that belong to no single test: the servers of a whole
// package, or of a command. A failure of a server is a panic, which Try turns into an
// error. The zero value is ready to use.
type Host struct {
	mu       sync.Mutex
	cleanups []func()
	failed   bool
}

// A trouble is the value of a panic of a Host.
type trouble struct{ error }

// Try calls f, and returns the failures of servers as an error. f may start servers and
// use the servers of the Host. A server that is not installed is ErrMissing.
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

// Close ends the servers, removes their folders, and returns the failures.
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

// Failed reports whether servers should print their logs.
func (h *Host) Failed() bool { return h.failed }

// Logf writes to stderr.
func (h *Host) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Fatalf ends Try with an error.
func (h *Host) Fatalf(format string, args ...any) { panic(trouble{fmt.Errorf(format, args...)}) }

// Skipf ends Try with an ErrMissing.
func (h *Host) Skipf(format string, args ...any) {
	panic(trouble{fmt.Errorf("%w: %s", ErrMissing, fmt.Sprintf(format, args...))})
}

// Cleanup adds f to the work of Close. Close calls later functions first.
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

// Missing ends a test whose server is not installed, as a Host has found out. The test
// ends as if the server had been started for the test alone.
func Missing(tb TB, err error) {
	tb.Helper()
	if errors.Is(err, ErrMissing) {
		Lacking(tb, "%v", err)
	}
}
