package caslock

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
)

// A desk is what a process knows of a key.
type desk struct {
	key   string
	calls chan struct{} // has one element while nobody changes the record

	users int // calls and watches, guarded by Store.mu

	mu      sync.Mutex
	known   *page // the latest page that this process has seen, nil if none
	version string
	seen    time.Duration // when the register showed known, or accepted known
	moved   time.Duration // when this process first saw the holders of known
	own     bool          // this process wrote known
	old     bool          // known has been replaced
	sights  sights
	longest time.Duration // something on a page of the key stands for this long
	used    time.Duration // when a call last ended

	// doubt says that a swap of the page with the number base has no answer.
	doubt bool
	base  uint64

	watches  []*watch
	unlooked bool          // the watches have not looked at known since it was noted
	noted    chan struct{} // has an element once a page was noted, or a watch was added
	stop     func()        // of the watch of the register, or of the looker; nil if there is none
	pushing  bool          // the register reports changes
	ends     *time.Timer   // looks at known again when a claim ends, if the register reports changes
}

// fresh is how long a page that was read is worth a swap without a new read.
const fresh = 100 * time.Millisecond

// enter returns the desk of a key, until leave.
func (s *Store) enter(key string) (*desk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.desks == nil {
		return nil, errClosed
	}
	d := s.desks[key]
	if d == nil {
		s.tidyLocked()
		d = &desk{key: key, calls: make(chan struct{}, 1), noted: make(chan struct{}, 1), sights: make(sights)}
		d.calls <- struct{}{}
		s.desks[key] = d
	}
	d.users++
	return d, nil
}

func (s *Store) leave(d *desk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.users--
	d.mu.Lock()
	d.used = s.now()
	d.mu.Unlock()
}

const (
	fewDesks = 1000
	settled  = 10 * time.Second // a late call has arrived by then
)

// tidyLocked removes the desks of keys on which this process can have no claim any more.
func (s *Store) tidyLocked() {
	if len(s.desks) < max(s.sweep, fewDesks) {
		return
	}
	now := s.now()
	for key, d := range s.desks {
		d.mu.Lock()
		if d.users == 0 && now > d.used+2*d.longest+settled {
			delete(s.desks, key)
		}
		d.mu.Unlock()
	}
	s.sweep = 2 * len(s.desks)
}

// lock waits until this process does not change the record.
func (d *desk) lock(ctx context.Context) error {
	select {
	case <-d.calls:
		return nil
	default:
	}
	select {
	case <-d.calls:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *desk) unlock() { d.calls <- struct{}{} }

// guess returns a view of the known page, nil if a later page is likely.
func (d *desk) guess(now time.Duration) *view {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || d.old {
		return nil
	}
	alone := d.own && len(d.known.Queue) == 0 // otherwise waiters have renewed their places
	if !alone && !d.pushing && now > d.seen+fresh {
		return nil
	}
	return d.viewLocked(d.known, d.version)
}

func (d *desk) viewLocked(p *page, version string) *view {
	return &view{page: p, version: version, proved: d.provedLocked(p), sights: maps.Clone(d.sights), moved: d.moved}
}

// provedLocked reports whether p is no earlier than what this process knows.
func (d *desk) provedLocked(p *page) bool {
	return (d.known == nil || p.Seq >= d.known.Seq) && (!d.doubt || p.Seq > d.base)
}

// learn notes a record that the register has shown.
func (d *desk) learn(r Record, now time.Duration) (*view, error) {
	p, err := d.parse(r)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Version != "" && (d.known == nil || p.Seq >= d.known.Seq) {
		d.noteLocked(p, r.Version, false, now)
	}
	v := d.viewLocked(p, r.Version)
	v.current = true
	return v, nil
}

// parse returns the page of a record, an empty page if there is no record. Most records that the
// register reports were written by this process, and are known.
func (d *desk) parse(r Record) (*page, error) {
	if r.Version == "" {
		return &page{Key: d.key}, nil
	}
	d.mu.Lock()
	known, version := d.known, d.version
	d.mu.Unlock()
	if known != nil && version == r.Version {
		return known, nil
	}
	return parse(d.key, r.Data)
}

// noteLocked notes the latest page.
func (d *desk) noteLocked(p *page, version string, own bool, now time.Duration) {
	if d.known == nil || d.known.Seq != p.Seq {
		d.own = own
	}
	if d.known == nil || !sameHolders(d.known, p) {
		d.moved = now
	}
	d.known, d.version, d.seen, d.old = p, version, now, false
	d.unlooked = true
	d.longest = max(d.longest, p.last())
	if d.doubt && p.Seq > d.base {
		d.doubt = false
	}
	p.book(d.sights, now)
	d.news()
}

// news lets the looker decide again when to look.
func (d *desk) news() {
	select {
	case d.noted <- struct{}{}:
	default:
	}
}

// swapped notes a page that this process wrote, as decided at the time m.
func (d *desk) swapped(p *page, version string, m book.Moment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doubt = false // The page that the unanswered swap would have replaced is gone.
	latest := d.known == nil || p.Seq >= d.known.Seq
	if latest {
		d.noteLocked(p, version, true, m.Now)
		d.own = true
	}
	// The register may have shown the page before it accepted the page, or a later page.
	for id, sp := range p.spans() {
		if seen := d.sights[id]; sp.Beat == p.Nonce && seen.beat == sp.Beat {
			d.sights[id] = sight{beat: sp.Beat, since: m.Now, own: true}
		}
	}
}

// conflicts notes that the register has a later page.
func (d *desk) conflicts() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.old = true
}

// doubts notes a swap without an answer, of the page with the number base.
func (d *desk) doubts(base uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.old = true
	if !d.doubt || base > d.base {
		d.doubt, d.base = true, base
	}
}

// after is a number above those of p and of all known pages. The first page of a record
// has the time as its number, so that numbers grow if the record was removed.
func (d *desk) after(p *page, m book.Moment) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	seq := p.Seq
	if d.known != nil {
		seq = max(seq, d.known.Seq)
	}
	if d.doubt {
		seq = max(seq, d.base)
	}
	if seq == 0 {
		seq = uint64(max(m.Wall, 0))
	}
	return seq + 1
}
