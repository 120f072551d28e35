package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// farewell is how long run waits for a blocked stderr, in ticks: however long this process
// gets no processor, that is one tick.
const (
	farewell = 2 * time.Second
	tick     = 100 * time.Millisecond
)

// A voice is the stderr of run. A write to a voice never blocks, and a broken pipe does not
// end this process, so output never decides when a command is ended. If stderr is blocked,
// lines are dropped.
type voice struct {
	out   io.Writer
	tasks chan func() // each writes a line, or ends a flush
}

func newVoice(out io.Writer) *voice {
	// The Go runtime ends a process that writes to a broken stderr, unless the process is
	// notified of SIGPIPE. Unlike Ignore, Notify is not inherited by the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	v := &voice{out: out, tasks: make(chan func(), 64)}
	go func() {
		for do := range v.tasks {
			do()
		}
	}()
	return v
}

func (v *voice) Write(line []byte) (int, error) {
	text := append([]byte(nil), line...)
	select {
	case v.tasks <- func() { v.out.Write(text) }:
	default:
	}
	return len(line), nil
}

// Unwrap returns the underlying writer.
func (v *voice) Unwrap() io.Writer { return v.out }

// flush waits until all lines are written, or until nobody seems to read.
func (v *voice) flush() {
	tasks, done := v.tasks, make(chan struct{})
	for range farewell / tick {
		select {
		case tasks <- func() { close(done) }:
			tasks = nil
		case <-done:
			return
		case <-time.After(tick):
		}
	}
}
