package locktest

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A journal has the events of a world for people. A test that fails logs the journal.
type journal struct {
	mu     sync.Mutex
	lines  []string
	closed bool
	left   int // out, for being too many
}

const journalled = 200 // lines

func (w *World) note(process, format string, args ...any) {
	at := time.Since(w.began)
	line := fmt.Sprintf("%10.3fs  %-9s  %s", at.Seconds(), process, fmt.Sprintf(format, args...))
	j := &w.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	if len(j.lines) == journalled {
		j.lines = append(j.lines[:0], j.lines[journalled/2:]...)
		j.left += journalled / 2
	}
	j.lines = append(j.lines, line)
}

// close ends the journal and returns the events, "" if it has ended before.
func (j *journal) close() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return ""
	}
	j.closed = true
	head := "locktest: what has happened (an unlock is shown when its answer arrives)"
	if j.left > 0 {
		head += fmt.Sprintf(", without the first %d lines", j.left)
	}
	return head + "\n" + strings.Join(j.lines, "\n")
}

// Logger returns a logger for code of the process. If the test fails, the lines are shown
// among the events of the world.
func (p *Process) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(logged{p}, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
				return slog.Attr{} // the journal has it
			}
			return a
		},
	}))
}

// logged makes each line of a log one of the journal.
type logged struct{ p *Process }

func (l logged) Write(line []byte) (int, error) {
	l.p.note("logs %s", bytes.TrimSuffix(line, []byte("\n")))
	return len(line), nil
}
