package redislock

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A combiner sends concurrent calls as one, like the group commit of a database. While
// two batches of calls are under way, later calls gather for the next batch. A lone call
// goes at once, as a batch of its own.
// Combining pays because receiving a command costs the server and the client more than an
// uncontended lock.
//
// A combined call handles only the usual case. In every other case the script leaves the
// claim alone, and the caller repeats the call alone.
type combiner struct {
	conn   Conn
	script script
	call   func(terms, []*pending) (keys, args []string)

	mu      sync.Mutex
	batches int        // under way
	waiting []*pending // for the next batch
}

const (
	maxBatches = 2   // the server executes the first while the second travels
	maxBatch   = 128 // claims in one call: a fraction of a millisecond of the server's time
)

// A pending is a call that may go together with calls on the same terms.
type pending struct {
	terms
	key, id  string
	least    uint64 // the least token of an Acquire
	deadline time.Time
	gone     atomic.Bool // the caller has given up
	reply    chan Reply  // has room for one reply
}

// terms are what most claims of one process have in common.
type terms struct {
	weight, limit int64
	ttl           time.Duration
	span          int
	owner, note   string
}

func termsOf(a driver.Ask) terms {
	return terms{a.Weight, a.Limit, a.TTL, span(a), a.Owner, a.Note}
}

// join sends a call together with other calls and returns the reply. joined is false if
// the caller must send the call alone, because too few batches are under way, or because
// the script left the claim alone. The caller then calls done after the reply.
func (c *combiner) join(ctx context.Context, key, id string, least uint64, on terms) (r Reply, joined bool, done func()) {
	c.mu.Lock()
	if c.batches < maxBatches {
		c.batches++
		c.mu.Unlock()
		return Reply{}, false, c.endBatch
	}
	deadline, ends := ctx.Deadline()
	if !ends {
		deadline = time.Now().Add(time.Minute)
	}
	p := &pending{terms: on, key: key, id: id, least: least, deadline: deadline, reply: make(chan Reply, 1)}
	c.waiting = append(c.waiting, p)
	c.mu.Unlock()
	select {
	case r = <-p.reply:
	case <-ctx.Done():
		p.gone.Store(true)
		r.Err = ctx.Err()
	}
	return r, r.Value != int64(0), func() {}
}

// endBatch ends a batch and starts the next batch with the waiting calls.
func (c *combiner) endBatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.batches--
		return
	}
	n := min(len(c.waiting), maxBatch)
	go c.send(c.waiting[:n:n])
	c.waiting = c.waiting[n:]
}

// send makes one call of the script for each group of pending calls on the same terms. send
// leaves out calls whose caller has given up, and is bounded by the latest deadline of the
// rest.
func (c *combiner) send(batch []*pending) {
	defer c.endBatch()
	groups := make(map[terms][]*pending, 1)
	var latest time.Time
	for _, p := range batch {
		if p.gone.Load() {
			continue
		}
		groups[p.terms] = append(groups[p.terms], p)
		if p.deadline.After(latest) {
			latest = p.deadline
		}
	}
	if len(groups) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), latest)
	defer cancel()
	var order [][]*pending
	var calls []Command
	for on, group := range groups {
		keys, args := c.call(on, group)
		order, calls = append(order, group), append(calls, c.script.call(keys, args...))
	}
	for i, r := range eval(ctx, c.conn, c.script, calls...) {
		answer(order[i], r)
	}
}

// answer gives each pending call its part of a reply.
func answer(group []*pending, r Reply) {
	list, _ := r.Value.([]any)
	if r.Err == nil && len(list) != len(group) {
		r.Err = errReply
	}
	for i, p := range group {
		if r.Err != nil {
			p.reply <- Reply{Err: r.Err}
		} else {
			p.reply <- Reply{Value: list[i]}
		}
	}
}

// acquireMany returns the keys and arguments of acquire_many. acquireMany sorts the group by
// the least token, because each token raises the tokens of the claims behind.
func (s *Store) acquireMany(on terms, group []*pending) (keys, args []string) {
	slices.SortStableFunc(group, func(p, q *pending) int { return cmp.Compare(p.least, q.least) })
	keys = append(make([]string, 0, 3*len(group)+1), s.names.floor(""))
	d := details{s.client, on.owner, on.note}
	args = append(make([]string, 0, 2*len(group)+5), itoa(on.weight), itoa(on.limit), micros(on.ttl), strconv.Itoa(on.span), d.String())
	for _, p := range group {
		held, places := s.names.pair(p.key)
		keys = append(keys, held, places, s.names.tomb(p.key, p.id))
		args = append(args, p.id, strconv.FormatUint(p.least, 10))
	}
	return keys, args
}

// releaseMany returns the keys and arguments of release_many.
func (s *Store) releaseMany(_ terms, group []*pending) (keys, args []string) {
	for _, p := range group {
		keys = append(keys, s.names.held(p.key))
		args = append(args, p.id)
	}
	return keys, args
}
