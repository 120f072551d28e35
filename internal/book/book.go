// Package book keeps the claims on one key: who holds, who stands in line, and
// who must not come back. A Book is plain data with functions of the time and
// a claim; it has no lock, clock, goroutine or I/O of its own. The store that
// owns it brings those, and so one set of rules serves memory and files.
//
// # Rules
//
// A claim is granted if its weight and those of the claims that hold do not
// pass its limit, and nobody stands in line. Whatever ends a claim (a release,
// an expiry, a break, a waiter that died at the head) lets in those in line,
// first come first served, for as long as the next one fits.
//
// Nothing happens between calls. Every call that changes the book first drops
// what has run out by then, so an expiry lets the next one in when somebody
// asks, and the refusal tells when asking may pay.
//
// A claim granted in line stands for [driver.Claim.Alive] until its owner has
// confirmed it, by Renew or by asking again. A place in line lasts as long
// after the last time of asking.
//
// # Time
//
// Leases are measured by Moment.Now alone. The wall clock makes tokens large
// enough to grow over a lost book, and tells people since when; its steps
// change nothing else.
package book

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// lateness is how long an Acquire may be on its way after its Release.
const lateness = 10 * time.Second

// A Moment is the time of a call, by two clocks.
type Moment struct {
	Now  time.Duration // by a clock that the store chose and that never goes back
	Wall int64         // microseconds since 1970

	// Grain is by how much Now may be behind, as the reading of a clock that
	// ticks in seconds is. Whatever stands until a time stands so much longer.
	Grain time.Duration
}

// in returns when so long will surely have passed.
func (m Moment) in(d time.Duration) time.Duration { return m.Now + m.Grain + d }

// A Book is the state of one key. The zero value is a key that nobody wants.
type Book struct {
	// Floor is the highest token given, spans included. A store may keep one
	// floor for many books: put it in before a call, take it out after.
	Floor uint64

	Phase uint64  // the token that the readers who hold share, 0 if none
	Held  []Entry // in the order of their grants
	Queue []Entry // first come first
	Tombs []Tomb

	// Pushed lists what the last call granted to claims in line, for the store
	// to wake them. It is no part of the state.
	Pushed []Push
}

// An Entry is a claim that holds or stands in line.
type Entry struct {
	ID          string
	Owner, Note string

	// Session names the client, without whose life the claim ends; the store
	// gives it a meaning. Empty: the claim survives its client.
	Session string
	Left    bool // its last renewal was with Leave

	Weight, Limit int64

	TTL   time.Duration // as last asked for
	Until time.Duration // by Moment.Now: it stands, or keeps its place, before this
	Asked time.Duration // by Moment.Now: its last Acquire
	Since int64         // by Moment.Wall: when it was granted, or began to wait
	Span  int           // tokens given; while in line, tokens asked for
	Fence uint64        // 0 while in line
}

// A Tomb keeps the id of an ended claim from coming back.
type Tomb struct {
	ID     string
	Until  time.Duration // by Moment.Now
	Broken bool          // ended by Break
}

// A Push is a grant to a claim in line. The TTL counts from the sending of the
// claim's last Acquire that was executed.
type Push struct {
	ID    string
	Grant driver.Grant
}

// Acquire asks for a claim, as driver.Store has it. session becomes that of
// the entry. It fails with driver.ErrInvalid if the claim makes no sense or
// the key has no tokens left.
func (b *Book) Acquire(m Moment, c driver.Claim, session string) (driver.Grant, error) {
	if c.Weight < 1 || c.Weight > c.Limit || c.Limit > driver.MaxWeight || c.TTL <= 0 {
		return driver.Grant{}, fmt.Errorf("%w: weight %d of %d for %v (want a weight from 1 to the limit, a limit up to %d, a positive TTL)",
			driver.ErrInvalid, c.Weight, c.Limit, c.TTL, int64(driver.MaxWeight))
	}
	b.expire(m.Now)
	err := b.handOff(m)
	if i := index(b.Held, c.ID); i >= 0 {
		return b.again(m, &b.Held[i], c), nil
	}
	if err != nil {
		return driver.Grant{}, err
	}
	if i := b.tomb(c.ID); i >= 0 {
		return driver.Grant{Retry: b.Tombs[i].Until - m.Now, Floor: b.Floor}, nil
	}

	e := Entry{
		ID: c.ID, Owner: c.Owner, Note: c.Note, Session: session,
		Weight: c.Weight, Limit: c.Limit,
		TTL: c.TTL, Until: m.in(c.TTL), Asked: m.Now, Since: m.Wall,
		Span: c.Span,
	}
	// Those in line do not fit, else they had been let in; and nobody may
	// pass them, this claim included if it is one of them.
	if len(b.Queue) == 0 && b.fits(&e) {
		if err := b.leads(m, c.Fence); err != nil {
			return driver.Grant{}, err
		}
		e.Fence = c.Fence
		return b.grant(m, e)
	}
	if !c.Wait {
		return b.refusal(m.in(0)), nil
	}
	place := b.enqueue(e, m.in(c.Alive()))
	g := b.refusal(m.in(0))
	g.Pause = time.Duration(place) * pause
	return g, nil
}

// pause is what a claim in line that has to ask by itself is asked to wait for each of
// those before it: it need not know at once how the line moves.
const pause = 5 * time.Millisecond

// again grants a claim that holds already. If its owner has left, this is an
// Acquire that was on its way, and changes nothing.
func (b *Book) again(m Moment, e *Entry, c driver.Claim) driver.Grant {
	if !e.Left {
		e.TTL, e.Until, e.Asked = c.TTL, m.in(c.TTL), m.Now
	}
	if len(b.Pushed) > 0 {
		b.Pushed = slices.DeleteFunc(b.Pushed, func(p Push) bool { return p.ID == c.ID })
	}
	return e.granted(max(e.Until-m.in(0), 1)) // 0 would be for ever
}

// enqueue gives e a place in line until then, or lets it keep the one it has. It returns
// how many are before it.
func (b *Book) enqueue(e Entry, until time.Duration) (before int) {
	e.Until = until
	if i := index(b.Queue, e.ID); i >= 0 {
		e.Since = b.Queue[i].Since
		b.Queue[i] = e
		return i
	}
	b.Queue = append(b.Queue, e)
	return len(b.Queue) - 1
}

// Renew lets a claim that holds stand for its TTL from now, as driver.Store
// has it: nil, or an error that matches driver.ErrLost, or driver.ErrInvalid if
// the token cannot be raised. With Leave the claim is without a session from
// now on, and no later Renew changes when it ends.
func (b *Book) Renew(m Moment, c driver.Claim) error {
	b.expire(m.Now)
	_ = b.handOff(m) // Without tokens nobody is let in; the next Acquire says so.
	i := index(b.Held, c.ID)
	if i < 0 {
		return b.gone(c.ID)
	}
	e := &b.Held[i]
	if err := b.raise(m, e, c.Fence); err != nil {
		return err
	}
	if e.Left {
		return nil // A renewal that was on its way, or this one sent again.
	}
	e.TTL, e.Until = c.TTL, m.in(c.TTL)
	if c.Leave {
		e.Session, e.Left = "", true
	}
	return nil
}

// Release ends a claim that holds or stands in line, as driver.Store has it:
// nil, or an error that matches driver.ErrLost if there was none. With Late
// its id is refused for ten seconds.
func (b *Book) Release(m Moment, c driver.Claim) error {
	b.expire(m.Now)
	var err error
	if !b.remove(c.ID) {
		err = b.gone(c.ID)
	}
	if c.Late {
		b.bury(Tomb{ID: c.ID, Until: m.in(lateness)})
	}
	_ = b.handOff(m)
	return err
}

// Break ends the claim whose public id this is and returns what it was.
// driver.ErrLost if there is none. Until the claim would have run out, and for
// ten seconds at least, its id is refused and its Renew says
// driver.ErrBroken.
func (b *Book) Break(m Moment, public string) (Entry, error) {
	b.expire(m.Now)
	is := func(e Entry) bool { return driver.PublicID(e.ID) == public }
	var e Entry
	if i := slices.IndexFunc(b.Held, is); i >= 0 {
		e = b.Held[i]
	} else if i := slices.IndexFunc(b.Queue, is); i >= 0 {
		e = b.Queue[i]
	} else {
		return Entry{}, driver.ErrLost
	}
	b.remove(e.ID)
	b.bury(Tomb{ID: e.ID, Until: max(e.Until, m.in(lateness)), Broken: true})
	_ = b.handOff(m)
	return e, nil
}

// Prune ends the claims, held or in line, whose session is not alive, and lets
// in those behind them. It asks only for sessions that are not empty, and may
// ask for the same one more than once.
func (b *Book) Prune(m Moment, alive func(session string) bool) {
	b.expire(m.Now)
	dead := func(e Entry) bool { return e.Session != "" && !alive(e.Session) }
	b.Held = slices.DeleteFunc(b.Held, dead)
	b.Queue = slices.DeleteFunc(b.Queue, dead)
	_ = b.handOff(m)
}
