package caslock

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/pace"
)

// A watch waits until a request for a claim may succeed.
type watch struct {
	claim driver.Claim
	wake  func(driver.Grant)
	mark  []byte // in the data of a record

	held, queued bool // on the page that was last looked at
}

// Watch implements [driver.Watcher]. A wake-up never brings a grant: the next Acquire
// confirms a claim that was granted from the queue.
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	d, err := s.enter(c.Key)
	if err != nil {
		return nil, err
	}
	w := &watch{claim: c, wake: wake, mark: mark(c.ID)}
	stop = func() {
		if d.remove(w) {
			s.leave(d)
		}
	}
	if err := d.lock(ctx); err != nil {
		s.leave(d)
		return nil, err
	}
	defer d.unlock()
	if d.add(w) {
		return stop, nil
	}
	if err := s.follow(ctx, d); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// follow begins to follow the record of a key. Only the holder of the desk's lock calls follow.
func (s *Store) follow(ctx context.Context, d *desk) error {
	if s.watcher == nil {
		s.mu.Lock() // Close waits for the lookers that have begun by then.
		defer s.mu.Unlock()
		if s.desks == nil {
			return errClosed
		}
		looking, cancel := context.WithCancel(s.closing)
		s.lookers.Go(func() { s.looks(looking, d) })
		d.follows(cancel, nil)
		return nil
	}
	stop, err := s.watcher.Watch(ctx, d.key, func(r Record) { s.reported(d, r) })
	if err != nil {
		return err
	}
	ends := time.AfterFunc(time.Hour, func() { s.observe(d) })
	ends.Stop() // until a page is known
	d.follows(stop, ends)
	if s.closing.Err() != nil { // Close may have looked before.
		d.unfollow(true)
		return errClosed
	}
	return nil
}

// reported notes a record that the register has reported.
func (s *Store) reported(d *desk, r Record) {
	if d.far(r.Data) {
		d.conflicts()
		return
	}
	s.changed(d, r)
}

// changed notes a record, and wakes the claims for which the record is good news.
func (s *Store) changed(d *desk, r Record) {
	if r.Version != "" {
		if _, err := d.learn(r, s.now()); err == nil {
			s.observe(d)
			return
		}
	}
	// The record was removed, or cannot be read. The requests of the waiters tell which.
	d.conflicts()
	for _, w := range d.waiting() {
		w.wake(driver.Grant{})
	}
}

// observe wakes the claims that the known page lets in.
func (s *Store) observe(d *desk) {
	for _, w := range d.due(book.Moment{Now: s.now(), Wall: time.Now().UnixMicro()}) {
		w.wake(driver.Grant{})
	}
}

// longestLook is the longest read of a goroutine that looks for waiters.
const longestLook = time.Second

// looks reads the record of a key for the waiters of this process, until ctx ends. A call of this
// process that has read the record saves a look.
func (s *Store) looks(ctx context.Context, d *desk) {
	defer d.news() // This goroutine may have consumed the news for its successor.
	looked := s.now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if left := d.untilLook(s.look, looked, s.now()); left > 0 {
			timer.Reset(pace.Spread(left))
			select {
			case <-ctx.Done():
				return
			case <-d.noted:
				if d.unlookedAt() {
					s.observe(d)
				}
				continue
			case <-timer.C:
			}
		}
		read, cancel := context.WithTimeout(ctx, longestLook)
		r, err := s.register.Read(read, d.key)
		cancel()
		looked = s.now()
		if err == nil && ctx.Err() == nil {
			s.changed(d, r)
		}
	}
}

// add adds a watch, and reports whether this process follows the record already.
func (d *desk) add(w *watch) (followed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watches = append(d.watches, w)
	d.news()
	return d.stop != nil
}

// follows notes how to stop following the record. ends is nil unless the register reports changes.
// The last watch may have gone by now.
func (d *desk) follows(stop func(), ends *time.Timer) {
	d.mu.Lock()
	d.stop, d.pushing, d.ends = stop, ends != nil, ends
	d.mu.Unlock()
	d.unfollow(false)
}

// remove removes a watch, and reports whether the watch was there.
func (d *desk) remove(w *watch) bool {
	d.mu.Lock()
	i := slices.Index(d.watches, w)
	if i >= 0 {
		d.watches = slices.Delete(d.watches, i, i+1)
	}
	d.mu.Unlock()
	d.unfollow(false)
	return i >= 0
}

// unfollow stops following the record if there is no watch. always stops in any case.
func (d *desk) unfollow(always bool) {
	d.mu.Lock()
	if !always && len(d.watches) > 0 {
		d.mu.Unlock()
		return
	}
	stop := d.stop
	if d.ends != nil {
		d.ends.Stop()
	}
	d.stop, d.pushing, d.ends = nil, false, nil
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// ours begins the data of the records of this release. All waiters hear of a record of a later release.
var ours = fmt.Appendf(nil, `{"format":%d,`, format)

// near is the number of claims ahead in the queue from which on a waiter does without most reports.
const near = 4

// far reports whether all waiters of this process are still far back in the queue of a record. Then
// nobody parses the record: if each of n waiters parsed each change of a record with n claims, a
// change would cost n². A waiter that gets near sees a dead holder as late as a process that has
// just started.
//
// No string of a record contains the name of a field and its quotes, because JSON escapes quotes.
func (d *desk) far(data []byte) bool {
	start := bytes.Index(data, []byte(`"queue":`))
	if start < 0 || !bytes.HasPrefix(data, ours) {
		return false
	}
	queue, _, _ := bytes.Cut(data[start:], []byte(`"tombs":`))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.watches {
		place := bytes.Index(queue, w.mark)
		if !w.queued || place < 0 || bytes.Count(queue[:place], []byte(`"id":`)) < near {
			return false
		}
	}
	return len(d.watches) > 0
}

// mark is the text of a claim's id in the data of a record.
func mark(id string) []byte {
	text, err := json.Marshal(id)
	if err != nil {
		panic(err) // JSON has all strings.
	}
	return append([]byte(`"id":`), text...)
}

func (d *desk) waiting() []*watch {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.watches)
}

// unlookedAt reports whether a page was noted since the last due, such as by a call that has read the
// record. The page may grant a claim, and the next look may be far away.
func (d *desk) unlookedAt() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unlooked
}

// due returns the watches of claims for which a request may succeed: the claims that were
// granted, that can be granted because a claim has expired, that have lost their place, and that
// inherit the end of a dead claim.
func (d *desk) due(m book.Moment) (list []*watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.watches) == 0 || d.known == nil {
		return nil
	}
	d.unlooked = false
	v := d.viewLocked(d.known, d.version)
	v.open(m)
	held, queued := ids(v.book.Held), ids(v.book.Queue)
	d.armLocked(v.book, m.Now)
	v.book.Prune(m, func(string) bool { return true }) // drops the expired claims, and grants
	granted := ids(v.book.Held)
	for _, w := range d.watches {
		was := *w
		w.held, w.queued = held[w.claim.ID], queued[w.claim.ID]
		switch {
		case w.held:
			if was.held {
				continue
			}
		case w.queued:
			if !granted[w.claim.ID] && !(d.pushing && v.inherits(w.claim.ID)) {
				continue
			}
		case !was.queued:
			if g, err := v.clone().book.Acquire(m, driver.Ask{Claim: w.claim}, ""); err == nil && !g.OK {
				continue
			}
		}
		list = append(list, w)
	}
	return list
}

func ids(entries []book.Entry) map[string]bool {
	set := make(map[string]bool, len(entries))
	for i := range entries {
		set[entries[i].ID] = true
	}
	return set
}
