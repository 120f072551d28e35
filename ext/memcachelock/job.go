package memcachelock

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/book"
)

// A job changes the record of one key: it looks at the item, decides, and writes
// it if nobody has done so meanwhile; otherwise it begins again with what the
// other has written.
//
// Only "add" and "cas" write. "ms" would do in one what each of them does
// together with "mg", but a server that cannot keep the new value, because it is
// too large or memory is full, then deletes the old one: somebody's lock.
type job struct {
	key   string
	item  string // the name of the key's item
	clock string // and of the clock's

	// decide does what the job is for, and reports whether the record has to be
	// written. Each call is about another state, and the last one counts.
	decide func(b *book.Book, m book.Moment, since int64) (write bool)

	// hold is what we know of the item from having written it, and guess that
	// there is no item to be expected; without either the job begins with a look.
	hold  *hold
	guess bool

	// short says that the first look may do without the clock, as it can where
	// one claim holds, or none.
	short bool

	// fresh is the id of the claim that stands for its TTL from now if decide
	// lets it stand at all, "" if there is none such.
	fresh string

	step  step
	known bool // what the state of the key is
	state state
	lost  bool // the server has no clock

	// What decide has made of the state.
	book   *book.Book
	value  []byte
	expiry int64

	wrote  bool   // the item is as decide wants it
	token  uint64 // that of a claim which has begun the item, else 0
	unsure string // the run in which a write may have been done unheard, "" if none
	err    error  // why the job has ended before its end
}

// A step is what a job does next.
type step int

const (
	look step = iota
	add
	swap
	touch
	remove
	done
)

// begin begins with what is known of the item, or with a look. A job may begin
// again on another connection.
func (j *job) begin(c *conn) {
	if j.step == done {
		return
	}
	if j.unsure != c.run {
		j.unsure = "" // All that was written has ended with its run.
	}
	j.state, j.known = state{}, j.guess
	if j.hold != nil && j.hold.run == c.run {
		j.state, j.known = state{cas: j.hold.cas, own: j.hold}, true
	}
	j.next(c)
}

// commands appends those of the job's step, and returns how many there are.
func (j *job) commands(out []byte) (all []byte, n int) {
	switch j.step {
	case look:
		out, n = fmt.Appendf(out, "mg %s v c t\r\n", j.item), 1
		if j.short {
			return out, n
		}
		if j.lost {
			out, n = startClock(out, j.clock), n+1
		}
		return fmt.Appendf(out, "mg %s t\r\n", j.clock), n + 1
	case remove:
		return fmt.Appendf(out, "md %s C%d\r\n", j.item, j.state.cas), 1
	case add:
		out = fmt.Appendf(out, "add %s 0 %d %d\r\n", j.item, j.expiry, len(j.value))
	case swap:
		out = fmt.Appendf(out, "cas %s 0 %d %d %d\r\n", j.item, j.expiry, len(j.value), j.state.cas)
	case touch:
		return fmt.Appendf(out, "md %s C%d I T%d\r\nmg %s v c t\r\n", j.item, j.state.cas, j.expiry, j.item), 2
	}
	out = append(append(out, j.value...), "\r\n"...)
	return fmt.Appendf(out, "mg %s v c t\r\n", j.item), 2
}

// replies takes the answers to commands.
func (j *job) replies(c *conn, rs []reply) {
	first, last := rs[0], rs[len(rs)-1]
	for _, r := range rs {
		if r.err == full && j.step == swap && j.state.alone && j.alone() {
			// There is no room for the new value beside the old one. But all that
			// it would change is how long the item stays, and that a server changes
			// in place when it marks the item as stale, which nobody here minds. If
			// the claim has begun the item it looks as if it had a larger token then.
			j.step = touch
			return
		}
		if r.err != nil && j.step == add && last.code == "VA" {
			break // There is no room to see that it is held, but held it is.
		}
		if r.err != nil {
			j.fail(r.err)
			return
		}
	}
	switch {
	case j.step == look:
		j.see(first)
		if j.short {
			j.short = false
			break
		}
		if j.lost = last.code != "HD"; j.lost {
			break
		}
		if last.left <= 0 {
			j.fail(c.spoiled(j.clock))
			return
		}
		if j.state.clock = horizon - last.left; !c.believes(j.state.clock) {
			c.failed = true // Another connection finds out what is wrong.
			return
		}
	case j.step == remove && first.code == "HD":
		j.wrote, j.hold, j.step = true, nil, done
		return
	case j.step == remove && first.code == "EX":
		j.known = false // and the reply does not tell more
	case j.step == remove || first.code == "NOT_FOUND" || first.code == "NF":
		j.see(reply{})
	case first.code == "STORED" || first.code == "HD":
		j.verify(c, last)
		return
	default: // somebody else was faster
		j.see(last)
	}
	j.next(c)
}

// see takes note of the item, whose time has to be asked for again.
func (j *job) see(r reply) {
	j.known = true
	j.state = state{value: r.value, cas: r.cas, left: r.left}
}

// verify looks whether the item is still what the job has written. If it is not,
// the record tells what has become of the claim.
func (j *job) verify(c *conn, r reply) {
	j.unsure = c.run
	if j.step != touch && r.value != string(j.value) {
		j.see(r)
		j.next(c)
		return
	}
	if j.step == add && len(j.book.Held) == 1 {
		j.token = c.token(r.cas)
		j.book.Held[0].Fence = j.token
		if j.book.Phase != 0 {
			j.book.Phase = j.token
		}
	}
	j.hold = nil
	if j.step != touch && j.alone() {
		j.hold = &hold{run: c.run, cas: r.cas, entry: j.book.Held[0], phase: j.book.Phase}
	}
	j.wrote, j.step = true, done
}

// alone reports whether all that the job leaves is the claim that it is about,
// for as long as the item stays.
func (j *job) alone() bool {
	b := j.book
	return len(b.Held) == 1 && len(b.Tombs) == 0 && b.Held[0].ID == j.fresh && !b.Held[0].Left
}

func (j *job) fail(err error) { j.err, j.step = err, done }

// knows returns what is known of the item once the job has ended: what it has written,
// or, if it has failed before that, what was known when it began.
func (j *job) knows() *hold {
	if j.wrote || j.err != nil && j.unsure == "" {
		return j.hold
	}
	return nil
}

// next decides what to do.
func (j *job) next(c *conn) {
	if j.step = look; !j.known {
		return
	}
	b, err := j.state.book(c, j.key)
	switch {
	case errors.Is(err, errClock):
		j.known = false
		return
	case err != nil:
		j.fail(err)
		return
	}
	if j.book = b; !j.decide(b, j.state.moment(), c.now()) {
		j.step = done
		return
	}
	switch exists := j.state.exists(); {
	case len(b.Held) == 0 && len(b.Tombs) == 0 && !exists:
		j.step = done
		return
	case len(b.Held) == 0 && len(b.Tombs) == 0:
		j.step = remove
		return
	case exists:
		j.step = swap
	default:
		j.step = add
	}
	j.value, j.expiry, err = j.state.write(b, j.key, j.fresh)
	switch {
	case errors.Is(err, errClock):
		j.known, j.step = false, look
	case err != nil:
		j.fail(err)
	}
}
