package memcachelock

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// A job changes the record of one key: it looks at the item, decides, and writes the item
// if the item has not changed meanwhile. Otherwise the job begins again with the new item.
//
// Only "add" and "cas" write. "ms" could replace each of them together with its "mg". But
// if the new value of an "ms" is too large, or memory is full, the server deletes the old
// value: a held lock.
type job struct {
	key   string
	item  string // the name of the key's item
	clock string // the name of the clock's item

	// decide does the work of the job, and reports whether the record has to be written.
	// Each call is about a new state, and the last call counts.
	decide func(b *book.Book, m book.Moment, since int64) (write bool)

	// last is what the last write has shown of the item; guess says that no item is
	// expected. Without either the job begins with a look.
	last  *lastWrite
	guess bool

	// short says that the first look may do without the clock. The clock is not needed if
	// the key has at most one claim.
	short bool

	// fresh is the id of the claim that stands for its TTL from now if decide keeps the
	// claim, or "" if there is none.
	fresh string

	// marks are commands about the marks of the waiters for the key. They go with the next
	// piece; their replies do not matter to the job.
	marks  []string
	marked []reply

	// leave, if not nil, returns more marks, for the piece that acquires the key; note takes
	// the replies to the marks of a claim that waits, not those to leave.
	leave func() []string
	note  func([]reply)

	step  step
	known bool // whether state is known
	state state
	lost  bool // the server has no clock

	// The result of decide.
	book   *book.Book
	value  []byte
	expiry int64

	wrote  bool   // the item is as decide wants
	token  uint64 // the token of a claim that has begun the item, else 0
	unsure string // the run in which a write may have been done without an answer; "" if none
	err    error  // why the job has failed
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

// begin begins with the known state of the item, or with a look. A job may begin again on a
// new connection.
func (j *job) begin(c *conn) {
	if j.step == done {
		return
	}
	if j.unsure != c.run {
		j.unsure = "" // All writes have ended with their run.
	}
	j.state, j.known = state{}, j.guess
	if j.last != nil && j.last.run == c.run {
		j.state, j.known = state{cas: j.last.cas, own: j.last}, true
	}
	j.next(c)
}

// commands appends the commands of the job's step, and returns the number of commands.
func (j *job) commands(out []byte) (all []byte, n int) {
	for _, command := range j.marks {
		out, n = append(out, command...), n+1
	}
	switch j.step {
	case look:
		out, n = fmt.Appendf(out, "mg %s v c t\r\n", j.item), n+1
		if j.short {
			return out, n
		}
		if j.lost {
			out, n = startClock(out, j.clock), n+1
		}
		return fmt.Appendf(out, "mg %s t\r\n", j.clock), n + 1
	case remove:
		return fmt.Appendf(out, "md %s C%d\r\n", j.item, j.state.cas), n + 1
	case add:
		out = fmt.Appendf(out, "add %s 0 %d %d\r\n", j.item, j.expiry, len(j.value))
	case swap:
		out = fmt.Appendf(out, "cas %s 0 %d %d %d\r\n", j.item, j.expiry, len(j.value), j.state.cas)
	case touch:
		return fmt.Appendf(out, "md %s C%d I T%d\r\nmg %s v c t\r\n", j.item, j.state.cas, j.expiry, j.item), n + 2
	}
	out = append(append(out, j.value...), "\r\n"...)
	return fmt.Appendf(out, "mg %s v c t\r\n", j.item), n + 2
}

// replies takes the answers to commands.
func (j *job) replies(c *conn, rs []reply) {
	if n := len(j.marks); n > 0 {
		j.marks, j.marked, rs = nil, rs[:n], rs[n:]
		if j.note != nil {
			j.note(j.marked)
			j.note = nil
		}
	}
	first, last := rs[0], rs[len(rs)-1]
	for _, r := range rs {
		if r.err == full && j.step == swap && j.state.alone && j.alone() {
			// There is no room for the new value beside the old value. But the new value
			// would only change the expiry of the item. A server changes the expiry in
			// place when it marks the item as stale, and the mark is harmless here. If the
			// claim has begun the item, its token then seems larger.
			j.step = touch
			return
		}
		if r.err != nil && j.step == add && last.code == "VA" {
			break // The add failed for lack of memory, but the item shows that the key is held.
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
			j.fail(c.wrongClock(j.clock))
			return
		}
		if j.state.clock = horizon - last.left; !c.plausible(j.state.clock) {
			c.failed = true // A new connection finds out what is wrong.
			return
		}
	case j.step == remove && first.code == "HD":
		j.wrote, j.last, j.step = true, nil, done
		return
	case j.step == remove && first.code == "EX":
		j.known = false // and the reply tells no more
	case j.step == remove || first.code == "NOT_FOUND" || first.code == "NF":
		j.see(reply{})
	case first.code == "STORED" || first.code == "HD":
		j.verify(c, last)
		return
	default: // a different process was faster
		j.see(last)
	}
	j.next(c)
}

// see records the item as of a reply. The server's clock has to be read again.
func (j *job) see(r reply) {
	j.known = true
	j.state = state{value: r.value, cas: r.cas, left: r.left}
}

// verify checks that the item is still as the job has written it. If the item has changed,
// the record shows the state of the claim.
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
	j.last = nil
	if j.step != touch && j.alone() {
		j.last = &lastWrite{run: c.run, cas: r.cas, entry: j.book.Held[0], phase: j.book.Phase}
	}
	j.wrote, j.step = true, done
}

// alone reports whether the job leaves only its own claim, for as long as the item stays.
func (j *job) alone() bool {
	b := j.book
	return len(b.Held) == 1 && len(b.Tombs) == 0 && b.Held[0].ID == j.fresh && !b.Held[0].Left
}

func (j *job) fail(err error) { j.err, j.step = err, done }

// lastWrite returns the known state of the item after the job: the state written. If the job
// failed before a write, lastWrite returns the state known at the beginning.
func (j *job) lastWrite() *lastWrite {
	if j.wrote || j.err != nil && j.unsure == "" {
		return j.last
	}
	return nil
}

// next chooses the next step.
func (j *job) next(c *conn) {
	if j.step = look; !j.known {
		return
	}
	b, err := j.state.book(c, j.key)
	switch {
	case errors.Is(err, errClock):
		j.known = false
		return
	case err != nil && j.unsure != "":
		j.fail(newer.Doubtful(err))
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
	if j.leave != nil {
		j.marks, j.note = append(j.marks, j.leave()...), nil
	}
	j.value, j.expiry, err = j.state.write(b, j.key, j.fresh)
	switch {
	case errors.Is(err, errClock):
		j.known, j.step = false, look
	case err != nil:
		j.fail(err)
	}
}
