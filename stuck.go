package holdfast

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"time"
)

// longWait is how long a lock must be held at least before the Locker logs that another of
// its calls waits for the lock.
const longWait = 10 * time.Second

// suspect makes the first waiter log, once per lock, that the Locker has held the lock
// for long. The renewer calls suspect, since a timer would slow hand-overs down. Call
// suspect with Locker.mu held.
func (l *lease) suspect(now time.Duration) {
	w := l.turn.line.first
	if w == nil || l.stuck || now-l.began() < max(l.claim().TTL, longWait) {
		return
	}
	l.stuck = true
	select {
	case w.stuck <- struct{}{}:
	default:
	}
}

// stuck logs that a call waits for a lock that this Locker has held for long: the call may
// be nested in the work that it waits for. The log shows where the call waits. Where the
// holder called Lock is unknown: to record it would cost every lock 100 ns.
func (a *attempt) stuck() {
	lk := a.lk
	lk.mu.Lock()
	held := lk.heldHere(a.turn)
	lk.mu.Unlock()
	lk.log(slog.LevelWarn, "a call waits for a lock that this Locker holds: is it a nested call without the lock's context, or is an Unlock missing?",
		"key", lk.shown(a.key), "waits", caller(), "since", held.Since, "note", held.Note)
}

var inside = reflect.TypeFor[Locker]().PkgPath() + "."

// caller returns the file and line that called this package.
func caller() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, inside) || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
