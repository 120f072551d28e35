package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// farewell is how long run waits at the end for a blocked stderr.
const farewell = 2 * time.Second

// A voice is the stderr of run. A write to a voice never blocks, and a broken pipe does not
// end this process, so output never decides when a command is ended. If stderr is blocked,
// lines are dropped.
type voice struct {
	out   io.Writer
	lines chan []byte
	done  chan struct{} // closed when the last line is written
}

func newVoice(out io.Writer) *voice {
	// The Go runtime ends a process that writes to a broken stderr, unless the process is
	// notified of SIGPIPE. Unlike Ignore, Notify is not inherited by the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	v := &voice{out: out, lines: make(chan []byte, 64), done: make(chan struct{})}
	go func() {
		defer close(v.done)
		for line := range v.lines {
			v.out.Write(line)
		}
	}()
	return v
}

func (v *voice) Write(line []byte) (int, error) {
	select {
	case v.lines <- append([]byte(nil), line...):
	default:
	}
	return len(line), nil
}

// Unwrap returns the underlying writer.
func (v *voice) Unwrap() io.Writer { return v.out }

// close waits until all lines are written, or until nobody seems to read.
func (v *voice) close() {
	close(v.lines)
	select {
	case <-v.done:
	case <-time.After(farewell):
	}
}
