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

	mu     sync.Mutex
	began  time.Time
	wrong  []string
	proved bool // something was wrong when no claim could have lost its place
	late   bool // something had not come soon, when no claim could have lost its place
}

const (
	// aWhile is how long a scene waits for what comes at once on a machine that is not slow.
	// It is less than a waiting claim keeps its place.
	aWhile = 1500 * time.Millisecond

	// prompt is how long after its beginning a scene is sure of the place of each claim.
	prompt = 2 * time.Second

	// playing is for how long a scene is played again after the third time. A machine on which
	// every scene takes too long would need minutes for each test otherwise.
	playing = 20 * time.Second
)

// inTime plays a scene, again only if a slow machine may be the reason for what was wrong. A
// scene fails the test at once if something was wrong in time. Something that was only late, or
// did not come in a minute, fails the test the third time.
func inTime(t *testing.T, play func(s *scene)) {
	t.Helper()
	var before []string // what was wrong in the last scene
	late := 0
	for again, first := 0, time.Now(); again < 3 || again < 10 && time.Since(first) < playing; again++ {
		s := &scene{T: t, began: time.Now()}
		var played sync.WaitGroup
		played.Go(func() { play(s) })
		played.Wait()
		s.mu.Lock() // Callbacks of the scene may be under way.
		took := time.Since(s.began)
		wrong, proved := s.wrong, s.proved
		if s.late || took > patience {
			late++
		}
		s.mu.Unlock()
		switch {
		case len(wrong) == 0:
			if again > 0 {
				unproved.Logf(t, "played again %d times, the last time because of %q", again, before)
			}
			return
		case proved || late == 3:
			for _, text := range wrong {
				t.Errorf("%s, in a scene of %v", text, took)
			}
			return
		}
		before = wrong
	}
	unproved.Logf(t, "%q", before)
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
	s.proved = s.proved || time.Since(s.began) < prompt
}

// Fatalf notes what is wrong, and ends the scene.
func (s *scene) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// Fatal is Fatalf for an error.
func (s *scene) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }

// missing ends the scene, because something has not come in a while.
func (s *scene) missing(what string) {
	s.mu.Lock()
	s.wrong = append(s.wrong, fmt.Sprintf("%s: not in %v", what, aWhile))
	s.late = time.Since(s.began) < prompt
	s.mu.Unlock()
	runtime.Goexit()
}
