package filelock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/book"
)

// A state is the contents of a record: the book of one key.
//
// Times in a record are times by the clock of the writer. A claim may have times by a
// different clock, because its process runs on a different host of a share or ran before
// the last reboot. Such a claim cannot be judged by time: in the book, the claim stands
// forever, until its session is found dead. Its own times are kept aside, for processes
// that share the clock.
type state struct {
	key string
	book.Book
	aside map[string]stamp // by claim id; for claims in the book until forever
}

// A stamp is the times of a claim by a different clock.
type stamp struct {
	clock        clockID
	until, asked time.Duration
}

const forever = time.Duration(math.MaxInt64)

// An anchor says when a record was written, by two clocks. With an anchor, times of one
// clock are translated to another clock: coarsely, since the wall clock may have been set
// in between.
type anchor struct {
	clock clockID
	book.Moment
}

// Flags of an entry or a tomb.
const (
	flagAside = 1 << iota // a stamp follows
	flagLeft
	flagBroken
)

var errMangled = permanent{errors.New("its contents make no sense; if no process uses it, remove it")}

// encode appends the state as written by the clock of a.
func (s *state) encode(b []byte, clock clockID) []byte {
	b = append(b, clock[:]...)
	b = appendString(b, s.key)
	b = binary.LittleEndian.AppendUint64(b, s.Floor)
	b = binary.LittleEndian.AppendUint64(b, s.Phase)
	for _, entries := range [...][]book.Entry{s.Held, s.Queue} {
		b = binary.AppendUvarint(b, uint64(len(entries)))
		for i := range entries {
			b = s.encodeEntry(b, &entries[i])
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.Tombs)))
	for i := range s.Tombs {
		b = appendTomb(b, &s.Tombs[i])
	}
	return b
}

func (s *state) encodeEntry(b []byte, e *book.Entry) []byte {
	own := stamp{until: e.Until, asked: e.Asked}
	flags := byte(0)
	if e.Until == forever {
		if other, ok := s.aside[e.ID]; ok {
			own, flags = other, flagAside
		}
	}
	if e.Left {
		flags |= flagLeft
	}
	b = append(b, flags)
	b = appendString(b, e.ID)
	b = appendString(b, e.Session)
	b = appendString(b, e.Owner)
	b = appendString(b, e.Note)
	b = binary.AppendUvarint(b, uint64(e.Weight))
	b = binary.AppendUvarint(b, uint64(e.Limit))
	b = binary.AppendUvarint(b, uint64(e.TTL))
	b = binary.AppendUvarint(b, uint64(e.Span))
	b = binary.LittleEndian.AppendUint64(b, uint64(own.until))
	b = binary.LittleEndian.AppendUint64(b, uint64(own.asked))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Since))
	b = binary.LittleEndian.AppendUint64(b, e.Fence)
	if flags&flagAside != 0 {
		b = append(b, own.clock[:]...)
	}
	return b
}

func appendTomb(b []byte, t *book.Tomb) []byte {
	flags := byte(0)
	if t.Broken {
		flags = flagBroken
	}
	b = append(b, flags)
	b = appendString(b, t.ID)
	return binary.LittleEndian.AppendUint64(b, uint64(t.Until))
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// load reads the state of a key from its record.
func (s *state) load(from slot, key string, here anchor) error {
	if from.seq == 0 {
		s.key, s.aside = key, nil
		s.Book = book.Book{Held: s.Held[:0], Queue: s.Queue[:0], Tombs: s.Tombs[:0], Pushed: s.Pushed[:0]}
		return nil
	}
	if err := s.decode(from.text, from.written, here); err != nil {
		return err
	}
	if s.key != key {
		return fmt.Errorf("%w (%q)", errOtherKey, s.key)
	}
	return nil
}

// held returns the held claim with this id, nil if there is none.
func (s *state) held(id string) *book.Entry { return find(s.Held, id) }

// inQueue reports whether the claim with this id is queued.
func (s *state) inQueue(id string) bool { return find(s.Queue, id) != nil }

func find(entries []book.Entry, id string) *book.Entry {
	for i := range entries {
		if entries[i].ID == id {
			return &entries[i]
		}
	}
	return nil
}

// strike leaves out the claims of ended sessions, without granting queued claims.
func (s *state) strike(alive func(session string) bool) {
	dead := func(e book.Entry) bool { return e.Session != "" && !alive(e.Session) }
	s.Held = slices.DeleteFunc(s.Held, dead)
	s.Queue = slices.DeleteFunc(s.Queue, dead)
}

// decode reads the output of encode, and translates the times to the clock of here. It
// reuses the memory of s.
func (s *state) decode(text []byte, written book.Moment, here anchor) error {
	// One copy for all strings; the strings outlive the buffer.
	d := decoder{rest: string(text)}
	from := anchor{clock: d.clock(), Moment: written}
	s.key = d.string()
	s.Floor, s.Phase = d.fixed(), d.fixed()
	s.Pushed = s.Pushed[:0]
	s.aside = nil
	s.Held = s.decodeEntries(s.Held[:0], &d, from, here)
	s.Queue = s.decodeEntries(s.Queue[:0], &d, from, here)
	s.Tombs = s.Tombs[:0]
	for n := d.count(); n > 0 && !d.bad; n-- {
		s.Tombs = append(s.Tombs, d.tomb(from, here))
	}
	if d.bad || d.rest != "" {
		return errMangled
	}
	return nil
}

func (s *state) decodeEntries(list []book.Entry, d *decoder, from, here anchor) []book.Entry {
	for n := d.count(); n > 0 && !d.bad; n-- {
		e, times := d.entry(from.clock)
		switch {
		case times.clock == here.clock:
			e.Until, e.Asked = times.until, times.asked
		case e.Session == "":
			// The claim has no session, so only time ends it.
			e.Until, e.Asked = translate(times.until, e.TTL, from, here), here.Now
		default:
			if s.aside == nil {
				s.aside = make(map[string]stamp)
			}
			s.aside[e.ID] = times
			e.Until, e.Asked = forever, here.Now
		}
		list = append(list, e)
	}
	return list
}

// translate converts a time of one clock to a second clock by way of the wall clock, but
// never later than most from now.
func translate(t, most time.Duration, from, here anchor) time.Duration {
	if from.clock == here.clock {
		return t
	}
	elapsed := time.Duration(here.Wall-from.Wall) * time.Microsecond
	left := t - from.Now - elapsed
	return here.Now + min(max(left, 0), most)
}

// A decoder parses a record. Its results are worthless once bad is set.
type decoder struct {
	rest string
	bad  bool
}

func (d *decoder) entry(clock clockID) (e book.Entry, times stamp) {
	flags := d.byte()
	e.Left = flags&flagLeft != 0
	e.ID = d.string()
	e.Session = d.string()
	e.Owner = d.string()
	e.Note = d.string()
	e.Weight = d.number()
	e.Limit = d.number()
	e.TTL = time.Duration(d.number())
	e.Span = int(d.number())
	times.until = time.Duration(d.fixed())
	times.asked = time.Duration(d.fixed())
	e.Since = int64(d.fixed())
	e.Fence = d.fixed()
	times.clock = clock
	if flags&flagAside != 0 {
		times.clock = d.clock()
	}
	d.bad = d.bad || e.Session != "" && !isSessionID(e.Session)
	return e, times
}

func (d *decoder) tomb(from, here anchor) book.Tomb {
	flags := d.byte()
	id := d.string()
	until := translate(time.Duration(d.fixed()), time.Hour, from, here)
	return book.Tomb{ID: id, Until: until, Broken: flags&flagBroken != 0}
}

func (d *decoder) take(n uint64) string {
	if d.bad || n > uint64(len(d.rest)) {
		d.bad = true
		return ""
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != "" {
		return b[0]
	}
	return 0
}

func (d *decoder) fixed() (v uint64) {
	for i, c := range []byte(d.take(8)) {
		v |= uint64(c) << (8 * i)
	}
	return v
}

func (d *decoder) uvarint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		c := d.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	d.bad = true
	return 0
}

func (d *decoder) number() int64 {
	v := d.uvarint()
	d.bad = d.bad || v > math.MaxInt64
	return int64(v)
}

// count reads how many elements follow; an element takes a byte at least.
func (d *decoder) count() uint64 {
	n := d.uvarint()
	d.bad = d.bad || n > uint64(len(d.rest))
	return n
}

func (d *decoder) string() string { return d.take(d.uvarint()) }

func (d *decoder) clock() (id clockID) {
	copy(id[:], d.take(uint64(len(id))))
	return id
}
