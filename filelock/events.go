package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/dirwatch"
)

// startLocked begins to receive events or to poll, once.
func (w *watcher) startLocked() {
	if w.started {
		return
	}
	w.started = true
	if !w.store.onNetwork.Load() {
		watch := func() (*dirwatch.Watch, error) { return dirwatch.New(w.store.dir, dirwatch.Closed) }
		if events, err := withRoom(w.store.closeIdle, watch); err == nil {
			w.events = events
			w.stopped.Go(func() { w.readEvents(events) })
			return
		}
	}
	w.stopped.Go(w.poll)
}

// startDelayed begins to watch for the held claims, if any, and checks for losses so far.
func (w *watcher) startDelayed() {
	w.mu.Lock()
	w.delayed = nil
	if w.closed || w.started || w.held == 0 {
		w.mu.Unlock()
		return
	}
	w.startLocked()
	w.stopped.Add(1)
	defer w.stopped.Done()
	w.mu.Unlock()
	w.checkHeld()
}

// restart begins to receive events anew, because the directory is a new one. Every claim then has
// to be checked.
func (w *watcher) restart() {
	w.mu.Lock()
	if w.closed || w.events == nil {
		w.mu.Unlock()
		return
	}
	w.events.Close()
	w.events, w.started = nil, false
	w.startLocked()
	w.mu.Unlock()
	w.handle("", true)
}

func (w *watcher) close() {
	w.mu.Lock()
	w.closed = true
	if w.delayed != nil {
		w.delayed.Stop()
	}
	close(w.quit)
	if w.events != nil {
		w.events.Close()
	}
	w.mu.Unlock()
	w.stopped.Wait()
}

// readEvents handles events until the events end.
func (w *watcher) readEvents(events *dirwatch.Watch) {
	for {
		batch, err := events.Next()
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			w.restart() // The directory was moved away, or its file system.
			return
		}
		for name, gone := range batch {
			w.handle(name, gone)
		}
	}
}

// handle handles one event; the empty name means that events may be missing.
func (w *watcher) handle(name string, gone bool) {
	id, ofSession := strings.CutPrefix(name, sessionPrefix)
	switch {
	case name == "":
		w.wakeAll()
		w.checkHeld()
	case ofSession && w.store.isOwn(id):
		if gone {
			w.store.forget()
		}
		w.checkHeld() // sendSignal causes this event.
	case ofSession:
		w.awaitEnd(id)
		w.wakeAll()
	default:
		w.check(name, gone, always)
	}
}

// always spares the check of every session of a long queue: the end of a session is an
// event of its own.
func always(string) bool { return true }

// awaitEnd gives the system a moment to finish the end of a process whose session was
// closed: the system reports the close shortly before it drops the lock.
func (w *watcher) awaitEnd(id string) {
	if !isSessionID(id) {
		return
	}
	for range 5 {
		if !w.store.alive(id) {
			return
		}
		select {
		case <-time.After(500 * time.Microsecond):
		case <-w.quit:
			return
		}
	}
}

// poll reads the records of waiting claims: often at first, because most locks are short,
// then less often. For held claims, poll reads the signal of the session.
func (w *watcher) poll() {
	const shortest, longest = 5 * time.Millisecond, 250 * time.Millisecond
	pause := shortest
	var last [signalSize]byte // as in a new session
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		var tick <-chan time.Time
		if waits, holds := w.interest(); waits || holds {
			timer.Reset(pause)
			tick = timer.C
		}
		select {
		case <-tick:
			pause = min(2*pause, longest)
			for _, name := range w.names() {
				w.check(name, false, w.store.alive)
			}
			if now := w.store.signal(); now != last {
				last = now
				w.checkHeld()
			}
		case <-w.pollNow:
			pause = shortest
		case <-w.quit:
			return
		}
	}
}

// pollSoon makes poll read soon.
func (w *watcher) pollSoon() {
	select {
	case w.pollNow <- struct{}{}:
	default:
	}
}

func (w *watcher) interest() (waits, holds bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting > 0, w.held > 0
}

func (w *watcher) names() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, at := range w.watched {
		if len(at.waits) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// known returns the key, the waiting claims and the held claims.
func (w *watcher) known(name string) (key string, waits []*wait, held []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.watched[name]
	if at == nil {
		return "", nil, nil
	}
	return at.key, slices.Clone(at.waits), slices.Clone(at.held)
}

// check reads a record and wakes the waiting claims that have been granted or have left
// the queue. If holders is set, check also reports the held claims that are lost.
func (w *watcher) check(name string, holders bool, alive func(session string) bool) {
	key, waits, held := w.known(name)
	if !holders {
		held = nil
	}
	if len(waits)+len(held) == 0 {
		return
	}
	st, at, err := w.store.peek(key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		held = nil // The claims may stand all the same.
	}
	for _, id := range held {
		// A claim no longer tracked was released meanwhile.
		if st.held(id) == nil && w.untrack(name, id) {
			w.losses.Tell(key, id, whyLost(&st, id, err))
		}
	}
	granted := make(map[*wait]driver.Grant)
	for _, one := range waits {
		if e := st.held(one.id); e != nil && e.Until > at.Now && e.Until != forever {
			granted[one] = driver.Grant{OK: true, Fence: e.Fence, Span: e.Span, TTL: e.Until - e.Asked}
		}
	}
	st.Prune(at.Moment, alive)
	for _, one := range waits {
		g, ok := granted[one]
		if ok || !st.inQueue(one.id) {
			if why := whyLost(&st, one.id, err); !ok && errors.Is(why, driver.ErrBroken) {
				w.losses.Tell(key, one.id, why)
			}
			one.wake(g)
		}
	}
}

func whyLost(st *state, id string, err error) error {
	if err != nil {
		return fmt.Errorf("%w: its lock file was removed", driver.ErrLost)
	}
	for _, tomb := range st.Tombs {
		if tomb.ID == id && tomb.Broken {
			return driver.ErrBroken
		}
	}
	return driver.ErrLost
}

// wakeAll makes every waiting claim retry.
func (w *watcher) wakeAll() {
	for _, name := range w.names() {
		_, waits, _ := w.known(name)
		for _, one := range waits {
			one.wake(driver.Grant{})
		}
	}
}

// checkHeld checks every held claim.
func (w *watcher) checkHeld() {
	w.mu.Lock()
	var names []string
	for name, at := range w.watched {
		if len(at.held) > 0 {
			names = append(names, name)
		}
	}
	w.mu.Unlock()
	for _, name := range names {
		w.check(name, true, always)
	}
}

// granted wakes a claim of this Store after a grant by this Store.
func (w *watcher) granted(name string, p book.Push) {
	_, waits, _ := w.known(name)
	for _, one := range waits {
		if one.id == p.ID {
			one.wake(p.Grant)
		}
	}
}
