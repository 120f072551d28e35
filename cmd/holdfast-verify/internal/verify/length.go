package verify

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/internal/rest"
)

// mostHistory is how many bytes of history are judged: the history of a million operations.
// The judge keeps the history in memory, in two to three times as many bytes.
const mostHistory = 1 << 29

// mostExtra is the number of extra rounds, each with the same faults. A run adds rounds
// while a slow machine or a slow store keeps it from proving something.
const mostExtra = 4

// Most is how long a run of a given length does harm, at most.
func Most(length time.Duration) time.Duration { return (1 + mostExtra) * length }

// short returns the reason why the run up to now proves nothing. The reason is "" if the
// run proves something, or if an extra round cannot change the answer.
func (s *scene) short(ctx context.Context) (why string, err error) {
	if s.cut > 0 || len(s.failures) > 0 {
		return "", nil
	}
	run, err := s.read(ctx)
	if err != nil {
		return "", err
	}
	r := s.report()
	r.count(run)
	if r.Grants >= s.Fewest && len(s.faults) == 0 {
		return "", nil
	}
	return r.lacks(s.Fewest, s.named), nil
}

// errFull ends a run whose history has grown to the limit.
var errFull = errors.New("its history was as large as can be judged by then: to see more, do another run with another seed")

// within returns a context for the time in which harm is done. The context ends early if
// there is enough to judge. The caller must call end.
func (s *scene) within(ctx context.Context) (length context.Context, end func()) {
	stopped, stop := context.WithCancelCause(ctx)
	length, cancel := context.WithTimeout(stopped, s.Length)
	began, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		for rest.For(length, time.Second) == nil {
			if size(s.dir) >= s.most {
				stop(errFull)
			}
		}
		if context.Cause(length) == errFull {
			s.cut = time.Duration(s.extra)*s.Length + time.Since(began)
		}
	}()
	return length, func() {
		cancel()
		<-ended
		stop(nil)
	}
}

// size returns the number of bytes of history.
func size(dir string) (n int64) {
	files, _ := histories(dir)
	for _, path := range files {
		if file, err := os.Stat(path); err == nil {
			n += file.Size()
		}
	}
	return n
}
