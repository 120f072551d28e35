package sqlitelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/dirwatch"
)

var errClosed = errors.New("the store is closed")

// The pause between two looks at the version of the database. The pause grows, since most
// changes come soon or late.
const (
	shortest = 50 * time.Microsecond
	longest  = 20 * time.Millisecond

	// The same if the system reports writes. A report comes before the commit, so looks
	// must go on for a while after it.
	settled = 50 * time.Millisecond
	quiet   = time.Second

	// After an error.
	trouble = 100 * time.Millisecond
)

// A listener reports commits to a database. Without waiters the listener does nothing.
type listener struct {
	file *file
	deaf bool          // look only, as on systems that do not report writes
	want chan struct{} // has one place: there is a waiter
	quit chan struct{}
	runs sync.WaitGroup

	mu      sync.Mutex
	started bool
	closed  bool
	events  *dirwatch.Watch // nil: the system does not report writes
}

func newListener(f *file) *listener {
	return &listener{file: f, want: make(chan struct{}, 1), quit: make(chan struct{})}
}

// To is empty: every process is notified of every commit.
func (l *listener) To() string { return "" }

// Listen implements sqlstore.Listener.
func (l *listener) Listen(ctx context.Context, hear func(string) bool) error {
	if err := l.start(ctx, hear); err != nil {
		return err
	}
	select {
	case l.want <- struct{}{}:
	default:
	}
	return nil
}

func (l *listener) start(ctx context.Context, hear func(string) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errClosed
	case l.file.lost.Load():
		return errMoved
	case l.started:
		return nil
	}
	at, err := l.file.find(ctx)
	if err != nil {
		return err
	}
	v, err := openVersion(at.path)
	if err != nil {
		return err
	}
	if !l.deaf {
		if events, err := dirwatch.New(filepath.Dir(at.path), dirwatch.Written); err == nil {
			l.events = events
		}
	}
	l.started = true
	l.runs.Go(func() {
		defer v.close()
		l.run(v, filepath.Base(at.path), hear)
	})
	return nil
}

func (l *listener) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.quit)
		if l.events != nil {
			l.events.Close()
		}
	}
	l.mu.Unlock()
	l.runs.Wait()
	return nil
}

func (l *listener) run(v *version, name string, hear func(string) bool) {
	w := &waiter{events: l.events, name: name, quit: l.quit}
	for {
		select {
		case <-l.want:
		case <-l.quit:
			return
		}
		for hear("") {
			if l.file.lost.Load() || !w.change(v) {
				return
			}
		}
	}
}

// A waiter waits for commits.
type waiter struct {
	events *dirwatch.Watch
	name   string // of the file
	quit   chan struct{}
}

// change waits until there was a commit, or may have been. It returns false when the
// listener is closed.
func (w *waiter) change(v *version) bool {
	pause := shortest
	for {
		changed, err := v.changed()
		if changed {
			return true
		}
		if err != nil {
			return w.rest(trouble)
		}
		switch w.sleep(pause) {
		case written:
			pause = shortest
		case moved:
			return true
		case over:
			pause = w.longer(pause)
		case closed:
			return false
		}
	}
}

func (w *waiter) longer(pause time.Duration) time.Duration {
	if w.events == nil {
		return min(2*pause, longest)
	}
	if pause *= 2; pause > settled {
		return quiet
	}
	return pause
}

// An end is the reason why a sleep has ended.
type end int

const (
	over    end = iota // the time is over
	written            // a process has written
	moved              // the file was made, removed or replaced
	closed             // Close was called
)

// sleep sleeps until something happens to the file.
func (w *waiter) sleep(d time.Duration) end {
	if w.events == nil {
		if !w.rest(d) {
			return closed
		}
		return over
	}
	if err := w.events.Limit(time.Now().Add(d)); err != nil {
		return closed
	}
	for {
		names, err := w.events.Next()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return over
		case errors.Is(err, os.ErrClosed):
			return closed
		case err != nil:
			// The folder has moved, and the file with it.
			w.events.Close()
			w.events = nil
			return moved
		case names[w.name] || names[""]:
			return moved
		}
		_, data := names[w.name]
		if _, log := names[w.name+"-wal"]; log || data {
			return written
		}
	}
}

// rest sleeps for d, and returns false if the listener is closed first.
func (w *waiter) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.quit:
		return false
	}
}
