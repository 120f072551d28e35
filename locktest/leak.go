package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A grant is a lock of a process.
type grant struct {
	p     *Process
	key   string // in the store
	fence uint64
	place string // where it was locked
	end   error  // why the lock ended without an Unlock
}

func (g *grant) leak() string {
	return fmt.Sprintf("locktest: the lock on %q was never unlocked: %s locked it at %s", g.key, g.p.name, g.place)
}

// trace keeps the list of locks that are held.
func (p *Process) trace(prefix string) *holdfast.Trace {
	w := p.w
	return &holdfast.Trace{
		Locked: func(e holdfast.Event) {
			g := &grant{p: p, key: prefix + e.Key, fence: e.Fence, place: caller()}
			w.mu.Lock()
			w.held = append(w.held, g)
			w.count.locks++
			w.mu.Unlock()
			p.note("locks %q after %v, token %d", g.key, e.Waited.Round(time.Millisecond), e.Fence)
		},
		Unlocked: func(e holdfast.Event) {
			p.note("has unlocked %q, token %d", prefix+e.Key, e.Fence)
			w.ends(p, prefix+e.Key, e.Fence, nil)
		},
		Lost: func(e holdfast.Event) {
			p.note("has lost %q, token %d: %v", prefix+e.Key, e.Fence, reason(e.Err))
			w.ends(p, prefix+e.Key, e.Fence, e.Err)
		},
		GaveUp: func(e holdfast.Event) {
			p.note("gives up %q after %v: %v", prefix+e.Key, e.Waited.Round(time.Millisecond), e.Err)
		},
	}
}

// reason is why a lock was lost, in a word.
func reason(err error) string {
	var lost *holdfast.LostError
	if errors.As(err, &lost) {
		return string(lost.Reason)
	}
	return fmt.Sprint(err)
}

// ends strikes off a lock. If readers of one process share a token, the last lock goes.
func (w *World) ends(p *Process, key string, fence uint64, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, g := range slices.Backward(w.held) {
		if g.p == p && g.key == key && g.fence == fence {
			w.held = slices.Delete(w.held, i, i+1)
			g.end = why
			if why != nil {
				w.count.lost++
			}
			if reason(why) == string(holdfast.LossDropped) {
				w.dropped = append(w.dropped, g)
			}
			return
		}
	}
}

// leaks returns the locks that were dropped, and the locks that are held and not unlocked in
// the next minute, since some goroutines may just now come to an end.
func (w *World) leaks() []*grant {
	settle()
	w.mu.Lock()
	left := slices.DeleteFunc(slices.Clone(w.held), func(g *grant) bool { return g.p == w.others })
	w.mu.Unlock()
	if len(left) > 0 {
		time.Sleep(time.Minute)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	left = slices.DeleteFunc(left, func(g *grant) bool {
		return g.end == nil && !slices.Contains(w.held, g) || slices.Contains(w.dropped, g)
	})
	return append(left, w.dropped...)
}

var house = reflect.TypeFor[holdfast.Locker]().PkgPath()

// caller returns the two innermost places of a call for a lock outside of Holdfast, since the
// first may be in a helper. If a goroutine of Holdfast has called, caller returns the
// outermost place in Holdfast.
func caller() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	place, last := "", ""
	for {
		f, more := frames.Next()
		if f.Function == "runtime.goexit" || f.Function == "testing.tRunner" || f.Function == "" {
			return cmp.Or(place, last)
		}
		last = fmt.Sprintf("%s:%d", relative(f.File), f.Line)
		switch {
		case inside(f):
		case place == "":
			place = last
		default:
			return place + " (called at " + last + ")"
		}
		if !more {
			return cmp.Or(place, last)
		}
	}
}

// inside reports whether a frame is in Holdfast, other than in its tests and examples.
func inside(f runtime.Frame) bool {
	path, ours := strings.CutPrefix(f.Function, house)
	return ours && (path[0] == '.' || path[0] == '/') && !strings.HasPrefix(path, "/examples/") && !strings.HasSuffix(f.File, "_test.go")
}

// relative shortens the name of a file below the folder of the test.
func relative(file string) string {
	if dir, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(dir, file); err == nil && !strings.HasPrefix(short, "..") {
			return short
		}
	}
	return file
}
