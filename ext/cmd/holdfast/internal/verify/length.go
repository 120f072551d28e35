package verify

import (
	"context"
	"errors"
	"os"
	"time"
)

// mostHistory is how many bytes of history are judged: those of a million operations. All
// of it is in memory then, in two to three times as many bytes.
const mostHistory = 1 << 29

// errFull ends a run whose history has grown to that.
var errFull = errors.New("its history was as large as can be judged by then: to see more, do another run with another seed")

// within returns the context of the time in which harm is done. It ends early if there
// is enough to judge. end has to be called.
func (s *scene) within(ctx context.Context) (length context.Context, end func()) {
	stopped, stop := context.WithCancelCause(ctx)
	length, cancel := context.WithTimeout(stopped, s.Length)
	began, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		for sleep(length, time.Second) {
			if size(s.dir) >= s.most {
				stop(errFull)
			}
		}
		if context.Cause(length) == errFull {
			s.cut = time.Since(began)
		}
	}()
	return length, func() {
		cancel()
		<-ended
		stop(nil)
	}
}

// size is how many bytes of history there are.
func size(dir string) (n int64) {
	files, _ := histories(dir)
	for _, path := range files {
		if file, err := os.Stat(path); err == nil {
			n += file.Size()
		}
	}
	return n
}
