package etcdlock_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/unproved"
)

// A scene is the T of steps with waiting claims that nobody keeps alive. A claim that is
// silent for three seconds loses its place, and a slow machine may need longer.
type scene struct {
	*testing.T

	mu    sync.Mutex
	began time.Time
	wrong []string
	late  bool // what is wrong is only that something has not come soon
}

// aWhile is how long a scene waits for what comes at once on a machine that is not slow. It
// is less than a waiting claim keeps its place.
const aWhile = 1500 * time.Millisecond

// inTime plays a scene until nothing is wrong, or until no claim can have lost its place
// before the end. Then inTime reports what is wrong; if something was late, when it was late
// three times. A scene of a minute or more proves nothing, and is not played again.
func inTime(t *testing.T, play func(s *scene)) {
	t.Helper()
	var wrong []string
	late := 0
	for range 10 {
		s := &scene{T: t, began: time.Now()}
		var playing sync.WaitGroup
		playing.Go(func() { play(s) })
		playing.Wait()
		s.mu.Lock()
		took := time.Since(s.began)
		prompt, doubt := took < 2*time.Second, s.late
		wrong = s.wrong
		s.mu.Unlock()
		if len(wrong) == 0 {
			return
		}
		if prompt && doubt {
			late++
		}
		if prompt && !doubt || late == 3 {
			for _, text := range wrong {
				t.Error(text)
			}
			return
		}
		if took > patience {
			break
		}
	}
	unproved.Logf(t, "%q", wrong)
}

// begin says that the first claim is about to wait.
func (s *scene) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = time.Now()
}

// Errorf notes what is wrong.
func (s *scene) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// Fatalf notes what is wrong, and ends the scene.
func (s *scene) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// missing ends the scene, because something has not come in a while.
func (s *scene) missing(what string) {
	s.mu.Lock()
	s.late = len(s.wrong) == 0
	s.mu.Unlock()
	s.Fatalf("%s: not in %v", what, aWhile)
}

// Fatal is Fatalf for an error.
func (s *scene) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }
