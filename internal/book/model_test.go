package book

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// model is the reference: the same rules without any thought of speed. It
// never forgets an id, and finds everything out anew from what it knows of
// each of them.
type model struct {
	ids    map[string]*fate
	ticket int
	now    time.Duration
	pushed []string
}

type fate struct {
	claim          driver.Claim
	session        string
	line, holds    int // the ticket drawn at the start of waiting, of holding; 0 if it does not
	left           int // the ticket with which it held when it left
	until, asked   time.Duration
	refused        time.Duration // a tombstone's end
	broken, buried bool
}

func (m *model) at(id string) *fate {
	if m.ids[id] == nil {
		m.ids[id] = &fate{}
	}
	return m.ids[id]
}

func (m *model) draw() int { m.ticket++; return m.ticket }

// sorted returns the ids that have a ticket, smallest first.
func (m *model) sorted(ticket func(*fate) int) []string {
	var list []string
	for id, f := range m.ids {
		if ticket(f) > 0 {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(ticket(m.ids[a]), ticket(m.ids[b])) })
	return list
}

func (m *model) holding() []string { return m.sorted(func(f *fate) int { return f.holds }) }
func (m *model) waiting() []string { return m.sorted(func(f *fate) int { return f.line }) }

func (m *model) fits(c driver.Claim) bool {
	sum := c.Weight
	for _, id := range m.holding() {
		sum += m.ids[id].claim.Weight
	}
	return sum <= c.Limit
}

// expire and admit are what may happen at any time.
func (m *model) expire(now time.Duration) {
	m.now, m.pushed = now, nil
	for _, f := range m.ids {
		if f.until <= now {
			f.line, f.holds = 0, 0
		}
		if f.refused <= now {
			f.buried, f.broken = false, false
		}
	}
}

func (m *model) admit() {
	for _, id := range m.waiting() {
		f := m.ids[id]
		if !m.fits(f.claim) {
			return
		}
		f.line, f.holds, f.until = 0, m.draw(), m.now+f.claim.Alive()
		m.pushed = append(m.pushed, id)
	}
}

func (m *model) acquire(now time.Duration, a driver.Ask, session string) bool {
	m.expire(now)
	m.admit()
	f := m.at(a.ID)
	switch {
	case f.holds > 0:
		m.pushed = slices.DeleteFunc(m.pushed, func(id string) bool { return id == a.ID })
		if f.left == f.holds {
			return true
		}
	case f.buried:
		return false
	case len(m.waiting()) == 0 && m.fits(a.Claim):
		f.holds, f.session = m.draw(), session
	case a.Wait:
		if f.line == 0 {
			f.line = m.draw()
		}
		f.session, f.claim, f.until, f.asked = session, a.Claim, now+a.Alive(), now
		return false
	default:
		return false
	}
	f.claim, f.until, f.asked = a.Claim, now+a.TTL, now
	return true
}

func (m *model) renew(now time.Duration, r driver.Renewal) error {
	m.expire(now)
	m.admit()
	f := m.at(r.ID)
	if f.holds == 0 {
		return m.gone(f)
	}
	if f.left == f.holds {
		return nil
	}
	f.until = now + r.TTL
	if r.Leave {
		f.session, f.left = "", f.holds
	}
	return nil
}

func (m *model) gone(f *fate) error {
	if f.buried && f.broken {
		return driver.ErrBroken
	}
	return driver.ErrLost
}

func (m *model) release(now time.Duration, r driver.Release) (err error) {
	m.expire(now)
	f := m.at(r.ID)
	if f.holds+f.line == 0 {
		err = m.gone(f)
	}
	f.holds, f.line = 0, 0
	if r.Late {
		f.buried, f.refused = true, max(f.refused, now+10*sec)
	}
	m.admit()
	return err
}

func (m *model) breaks(now time.Duration, id string) error {
	m.expire(now)
	f := m.at(id)
	if f.holds+f.line == 0 {
		return driver.ErrLost
	}
	f.holds, f.line = 0, 0
	f.buried, f.broken, f.refused = true, true, max(f.until, now+10*sec)
	m.admit()
	return nil
}

func (m *model) prune(now time.Duration, dead string) {
	m.expire(now)
	for _, f := range m.ids {
		if f.session == dead {
			f.holds, f.line = 0, 0
		}
	}
	m.admit()
}

// retry is when the first of those that hold runs out.
func (m *model) retry(id string) time.Duration {
	if f := m.at(id); f.buried {
		return f.refused - m.now
	}
	var left []time.Duration
	for _, id := range m.holding() {
		left = append(left, m.ids[id].until-m.now)
	}
	return slices.Min(left)
}

// A run plays one schedule to a Book and to the model, and keeps the history
// of tokens.
type run struct {
	desk  desk
	model *model
	Moment
	highest uint64
	phase   uint64            // the token of the read phase that can still be joined
	tokens  map[string]uint64 // of those that hold
}

// cast are the claims that a schedule is about.
func cast(id byte) driver.Ask {
	kinds := []driver.Ask{
		writer("w0"), lasting(writer("w1"), 2*sec), span(writer("w2"), 7),
		reader("r0"), lasting(reader("r1"), sec), span(reader("r2"), 3), reader("r3"),
		slot("s0", 2), slot("s1", 2), slot("s2", 3), span(lasting(slot("s3", 3), 4*sec), 5),
		{Claim: driver.Claim{ID: "s4", Weight: 2, Limit: 3, TTL: 20 * sec}, Wait: true},
	}
	return kinds[int(id)%len(kinds)]
}

// step plays one call: what it is, whose, how long after the last one.
func (r *run) step(what, whose, when byte) {
	// Most calls come at once, some after seconds.
	if when%4 == 0 {
		r.Now += time.Duration(when/4%16) * 250 * time.Millisecond
	}
	r.Wall = epoch + r.Now.Microseconds()
	if when >= 192 {
		r.Wall -= 3_000_000 // The wall clock is wrong for once.
	}
	a := cast(whose)
	r.desk.Logf("%v %d %s", r.Now, what%16, a.ID)
	session := []string{"", "one", "two"}[int(whose)%3]
	var got, want error
	switch what % 16 {
	case 0, 1, 2, 3, 4, 5, 6:
		r.ask(a, session)
	case 7:
		r.ask(try(a), session)
	case 8, 9:
		got, want = r.desk.Renew(r.Moment, renewal(a)), r.model.renew(r.Now, renewal(a))
	case 10:
		last := leave(lasting(a, 3*sec))
		got, want = r.desk.Renew(r.Moment, last), r.model.renew(r.Now, last)
	case 11, 12:
		got, want = r.desk.Release(r.Moment, end(a)), r.model.release(r.Now, end(a))
	case 13:
		got, want = r.desk.Release(r.Moment, late(a)), r.model.release(r.Now, late(a))
	case 14:
		_, got = r.desk.Break(r.Moment, driver.PublicID(a.ID))
		want = r.model.breaks(r.Now, a.ID)
	case 15:
		dead := []string{"one", "two"}[int(whose)%2]
		r.desk.Prune(r.Moment, func(session string) bool { return session != dead })
		r.model.prune(r.Now, dead)
	}
	if !errors.Is(got, want) || errors.Is(got, driver.ErrBroken) != errors.Is(want, driver.ErrBroken) {
		r.desk.Fatalf("at %v: call %d of %s says %v, want %v", r.Now, what%16, a.ID, got, want)
	}
	r.compare()
}

func (r *run) ask(a driver.Ask, session string) {
	got, err := r.desk.Acquire(r.Moment, a, session)
	if err != nil {
		r.desk.Fatal(err)
	}
	if want := r.model.acquire(r.Now, a, session); got.OK != want {
		r.desk.Fatalf("at %v: %s granted: %v, want %v", r.Now, a.ID, got.OK, want)
	}
	if !got.OK {
		if want := r.model.retry(a.ID); got.Left != want || got.Left <= 0 {
			r.desk.Fatalf("at %v: %s is told to ask again in %v, want %v", r.Now, a.ID, got.Left, want)
		}
		return
	}
	if want := r.model.ids[a.ID].until - r.Now; got.TTL != want {
		r.desk.Fatalf("at %v: %s was granted for %v, want %v", r.Now, a.ID, got.TTL, want)
	}
}

// compare looks at the whole state after a call.
func (r *run) compare() {
	want := strings.Join(r.model.holding(), " ") + "|" + strings.Join(r.model.waiting(), " ")
	r.desk.shows(r.Now, want)
	r.desk.pushed(r.model.pushed...)
	for _, p := range r.desk.Pushed {
		f := r.model.ids[p.ID]
		if want := r.Now - f.asked + f.claim.Alive(); p.Grant.TTL != want {
			r.desk.Fatalf("at %v: pushed %s for %v, want %v", r.Now, p.ID, p.Grant.TTL, want)
		}
	}
	var sum int64
	for _, e := range r.desk.Held {
		if e.Until <= r.Now {
			continue
		}
		sum += e.Weight
		if f := r.model.ids[e.ID]; e.Until != f.until {
			r.desk.Fatalf("at %v: %s stands until %v, want %v", r.Now, e.ID, e.Until, f.until)
		}
	}
	if sum > driver.MaxWeight {
		r.desk.Fatalf("at %v: an exclusive claim is not alone: %s", r.Now, r.desk.shown(r.Now))
	}
	r.history()
}

// history checks the tokens of those that hold against all before.
func (r *run) history() {
	before := r.tokens
	r.tokens = make(map[string]uint64)
	readers := false
	for _, e := range r.desk.Held {
		raised := before[e.ID] != 0 && r.phase == e.Fence
		readers = readers || e.shared() && (before[e.ID] == e.Fence || raised)
	}
	if !readers {
		r.phase = 0
	}
	for _, e := range r.desk.Held { // in the order of their grants
		r.tokens[e.ID] = e.Fence
		if before[e.ID] == e.Fence {
			continue
		}
		if e.shared() && r.phase != 0 {
			if e.Fence != r.phase {
				r.desk.Fatalf("at %v: reader %s got token %d, want %d, that of its phase", r.Now, e.ID, e.Fence, r.phase)
			}
			continue
		}
		if e.Fence <= r.highest || e.Fence < uint64(r.Wall) {
			r.desk.Fatalf("at %v: %s got token %d, want more than %d and at least the clock's %d", r.Now, e.ID, e.Fence, r.highest, r.Wall)
		}
		r.highest, r.phase = e.Fence+uint64(e.Span)-1, 0
		if e.shared() {
			r.phase = e.Fence
		}
	}
	if r.highest != r.desk.Floor {
		r.desk.Fatalf("at %v: the floor is %d, want %d", r.Now, r.desk.Floor, r.highest)
	}
}

func play(t *testing.T, schedule []byte) {
	r := &run{desk: desk{T: t}, model: &model{ids: make(map[string]*fate)}}
	for ; len(schedule) >= 3; schedule = schedule[3:] {
		r.step(schedule[0], schedule[1], schedule[2])
	}
}

func FuzzBook(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 3, 1, 0, 4, 1, 11, 0, 9, 8, 3, 9})
	f.Add([]byte{0, 7, 0, 0, 11, 1, 0, 8, 1, 14, 7, 63, 15, 11, 200})
	f.Fuzz(func(t *testing.T, schedule []byte) { play(t, schedule) })
}

func TestRandomSchedules(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		schedule := make([]byte, 3*150)
		for i := range schedule {
			schedule[i] = byte(random.Uint32())
		}
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { play(t, schedule) }) {
			return
		}
	}
}
