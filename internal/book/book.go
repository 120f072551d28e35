// Package book keeps the claims on one key: the holders, the queue, and the ended claims
// that must not come back. A Book is plain data with functions of the time and a claim; it
// has no lock, clock, goroutine or I/O of its own. The store that owns the Book brings
// these. One set of rules therefore serves memory and files.
//
// # Rules
//
// A claim is granted if the queue is empty and the claim fits: its weight plus the weights
// of the holders must not exceed its limit. Every end of a claim (a release, an expiry, a
// break, a waiter that died at the head) grants queued claims in FIFO order. The grants
// stop at a claim that does not fit.
//
// Nothing happens between calls. Every call that changes the book first drops expired
// claims. An expiry therefore grants the next claim only at the next call; a refusal says
// when to retry.
//
// A claim granted from the queue stands for [driver.Claim.Alive] until its owner has
// confirmed the claim, by Renew or a further Acquire. A place in the queue lasts as long
// after the last Acquire; behind many claims it lasts longer, see [Kept].
//
// A released or broken claim may leave a tomb: for ten seconds, an Acquire with the same id is
// refused. So a request that was on its way during the release does not bring the claim back.
//
// # Time
//
// Leases are measured by Moment.Now alone. The wall clock makes tokens so large that they
// keep growing after the book was lost, and tells people since when a claim stands. Steps
// of the wall clock change nothing else.
package book

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/pace"
)

// lateness is how long an Acquire may be under way after its Release.
const lateness = 10 * time.Second

// A Moment is the time of a call, by two clocks.
type Moment struct {
	Now  time.Duration // by a clock of the store that never goes back
	Wall int64         // microseconds since 1970

	// Grain is by how much Now may be behind, as with a clock that ticks in seconds. Every
	// expiry is later by Grain.
	Grain time.Duration
}

// in returns the time by which d will surely have passed.
func (m Moment) in(d time.Duration) time.Duration { return m.Now + m.Grain + d }

// A Book is the state of one key. The zero value is a key that nobody wants.
type Book struct {
	// Floor is the highest token given, spans included. A store may keep one floor for many
	// books: set Floor before a call, read Floor after the call.
	Floor uint64

	Phase uint64  // the token shared by the readers who hold, 0 if none
	Held  []Entry // in the order of their grants
	Queue []Entry // FIFO
	Tombs []Tomb

	// Part says that the store has read only the first claim of the queue and one more. Omitted is
	// how many claims are between the two. Unless something has expired or a claim is gone, a refusal
	// is right all the same, and so is the grant to a first claim that wants the whole key.
	Part    bool
	Omitted int

	// Pushed lists the grants of the last call to queued claims, for the store to wake
	// the claims. It is no part of the state.
	Pushed []Push
}

// An Entry is a claim that holds or is queued.
type Entry struct {
	ID          string
	Owner, Note string

	// Session names the client; the claim ends with the client. The store gives Session a
	// meaning. Empty: the claim survives its client.
	Session string
	Left    bool // its last renewal was with Leave

	Weight, Limit int64

	TTL   time.Duration // as last requested
	Until time.Duration // by Moment.Now: the claim stands, or keeps its place, before Until
	Asked time.Duration // by Moment.Now: its last Acquire
	Since int64         // by Moment.Wall: when it was granted, or began to wait
	Span  int           // tokens given; in the queue, tokens requested
	Fence uint64        // 0 in the queue
}

// A Tomb refuses the id of an ended claim.
type Tomb struct {
	ID     string
	Until  time.Duration // by Moment.Now
	Broken bool          // ended by Break
}

// A Push is a grant to a queued claim. The TTL counts from the sending of the claim's last
// Acquire that was executed.
type Push struct {
	ID    string
	Grant driver.Grant
}

// Acquire requests a claim, as driver.Store describes. session becomes the session of the
// entry. Acquire fails with driver.ErrInvalid if the claim makes no sense or the key has no
// tokens left.
func (b *Book) Acquire(m Moment, a driver.Ask, session string) (driver.Grant, error) {
	if a.Weight < 1 || a.Weight > a.Limit || a.Limit > driver.MaxWeight || a.TTL <= 0 {
		return driver.Grant{}, fmt.Errorf("%w: weight %d of %d for %v (want a weight from 1 to the limit, a limit up to %d, a positive TTL)",
			driver.ErrInvalid, a.Weight, a.Limit, a.TTL, int64(driver.MaxWeight))
	}
	b.expire(m.Now)
	err := b.handOff(m)
	if i := index(b.Held, a.ID); i >= 0 {
		return b.again(m, &b.Held[i], a), nil
	}
	if err != nil {
		return driver.Grant{}, err
	}
	if i := b.tomb(a.ID); i >= 0 {
		return driver.Grant{Left: b.Tombs[i].Until - m.Now, Floor: b.Floor}, nil
	}

	e := Entry{
		ID: a.ID, Owner: a.Owner, Note: a.Note, Session: session,
		Weight: a.Weight, Limit: a.Limit,
		TTL: a.TTL, Until: m.in(a.TTL), Asked: m.Now, Since: m.Wall,
		Span: a.Span,
	}
	// The queued claims do not fit: handOff would have granted them. No claim may pass the
	// queue, not even a queued claim.
	if len(b.Queue) == 0 && b.fits(&e) {
		if err := b.leads(m, a.Fence); err != nil {
			return driver.Grant{}, err
		}
		e.Fence = a.Fence
		return b.grant(m, e)
	}
	if !a.Wait {
		return b.refusal(m.in(0)), nil
	}
	i := b.enqueue(e)
	place := b.ahead(i)
	kept := Kept(a.Claim, place)
	b.Queue[i].Until = m.in(kept)
	g := b.refusal(m.in(0))
	g.Pause = time.Duration(place) * pace.First // a waiter far back need not learn at once how the queue moves
	if kept > a.Alive() {
		g.Kept = kept
	}
	return g, nil
}

// Crowd is the number of claims ahead for each further Alive that a place lasts.
const Crowd = 8

// Kept returns how long a place behind so many claims lasts after a request. In a store with
// one record a key, each request rewrites the whole queue. With longer places further back,
// the requests of a long queue do not take all the time of the store. However many waiters die,
// those behind wait for [Longest], or for as long as the store keeps a place.
func Kept(c driver.Claim, ahead int) time.Duration {
	return min(c.Alive()*time.Duration(1+ahead/Crowd), Longest(c))
}

// Longest returns how long a place lasts at most after a request.
func Longest(c driver.Claim) time.Duration { return min(4*c.Alive(), c.TTL) }

// again grants a claim that holds already. A reader receives the token of the phase, which
// may have been raised since. The phase may also be newer than the reader, if a slot was
// granted between; no claim has a larger token. If the owner has left, this Acquire was under
// way before, and does not change the end of the claim.
func (b *Book) again(m Moment, e *Entry, a driver.Ask) driver.Grant {
	if !e.Left {
		e.TTL, e.Until, e.Asked = a.TTL, m.in(a.TTL), m.Now
	}
	if e.shared() {
		e.Fence = max(e.Fence, b.Phase)
	}
	if len(b.Pushed) > 0 {
		b.Pushed = slices.DeleteFunc(b.Pushed, func(p Push) bool { return p.ID == a.ID })
	}
	return e.granted(max(e.Until-m.in(0), 1)) // 0 would be for ever
}

// enqueue gives e a place in the queue, or keeps the present place. It returns the number of
// claims before e.
func (b *Book) enqueue(e Entry) (before int) {
	if i := index(b.Queue, e.ID); i >= 0 {
		e.Since = b.Queue[i].Since
		b.Queue[i] = e
		return i
	}
	b.Queue = append(b.Queue, e)
	return len(b.Queue) - 1
}

// Renew extends a holding claim to its TTL from now, as driver.Store describes. It returns
// nil, or an error that matches driver.ErrLost, or driver.ErrInvalid if the token cannot be
// raised. With Leave the claim is without a session from now on, and no later Renew changes
// its end.
func (b *Book) Renew(m Moment, r driver.Renewal) error {
	b.expire(m.Now)
	_ = b.handOff(m) // Without tokens nobody is granted; the next Acquire says so.
	i := index(b.Held, r.ID)
	if i < 0 {
		return b.gone(r.ID)
	}
	e := &b.Held[i]
	if err := b.raise(m, e, r.Fence); err != nil {
		return err
	}
	if e.Left {
		return nil // This renewal was under way before, or is the last renewal sent again.
	}
	e.TTL, e.Until = r.TTL, m.in(r.TTL)
	if r.Leave {
		e.Session, e.Left = "", true
	}
	return nil
}

// Release ends a claim that holds or is queued, as driver.Store describes. It returns nil,
// or an error that matches driver.ErrLost if there was none. With Late the id is refused
// for ten seconds.
func (b *Book) Release(m Moment, r driver.Release) error {
	b.expire(m.Now)
	var err error
	if !b.remove(r.ID) {
		err = b.gone(r.ID)
	}
	if r.Late {
		b.addTomb(Tomb{ID: r.ID, Until: m.in(lateness)})
	}
	_ = b.handOff(m)
	return err
}

// Break ends the claim with this public id and returns the ended claim, or driver.ErrLost
// if there is none. Until the claim would have expired, and for ten seconds at least, the
// id is refused, and Renew returns driver.ErrBroken.
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
	b.addTomb(Tomb{ID: e.ID, Until: max(e.Until, m.in(lateness)), Broken: true})
	_ = b.handOff(m)
	return e, nil
}

// Prune ends the claims, held or queued, of dead sessions, and grants the next queued
// claims. It calls alive only for sessions that are not empty, and may call alive more than
// once for a session.
func (b *Book) Prune(m Moment, alive func(session string) bool) {
	b.expire(m.Now)
	dead := func(e Entry) bool { return e.Session != "" && !alive(e.Session) }
	b.Held = slices.DeleteFunc(b.Held, dead)
	b.Queue = slices.DeleteFunc(b.Queue, dead)
	_ = b.handOff(m)
}
