package redislock

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A combiner sends concurrent calls as one, like the group commit of a database. While
// calls are under way, later calls gather and then go together. A lone call goes at once.
// Combining pays because receiving a command costs the server and the client more than an
// uncontended lock.
//
// A combined call handles only the usual case. In every other case the script leaves the
// claim alone, and the caller repeats the call alone.
type combiner struct {
	conn   Conn
	script script
	call   func(terms, []*ticket) (keys, args []string)

	mu      sync.Mutex
	flights int       // under way
	waiting []*ticket // for the next flight
}

const (
	maxFlights = 2   // the server executes the first while the second travels
	maxSeats   = 128 // claims in one call: a fraction of a millisecond of the server's time
)

// A ticket is a call that may go together with calls on the same terms.
type ticket struct {
	terms
	key, id  string
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
// the caller must send the call alone, because too few calls are under way, or because
// the script left the claim alone. The caller then calls done after the reply.
func (c *combiner) join(ctx context.Context, key, id string, on terms) (r Reply, joined bool, done func()) {
	c.mu.Lock()
	if c.flights < maxFlights {
		c.flights++
		c.mu.Unlock()
		return Reply{}, false, c.land
	}
	deadline, ends := ctx.Deadline()
	if !ends {
		deadline = time.Now().Add(time.Minute)
	}
	t := &ticket{terms: on, key: key, id: id, deadline: deadline, reply: make(chan Reply, 1)}
	c.waiting = append(c.waiting, t)
	c.mu.Unlock()
	select {
	case r = <-t.reply:
	case <-ctx.Done():
		t.gone.Store(true)
		r.Err = ctx.Err()
	}
	return r, r.Value != int64(0), func() {}
}

// land ends a flight and starts the next flight with the waiting calls.
func (c *combiner) land() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.flights--
		return
	}
	n := min(len(c.waiting), maxSeats)
	go c.fly(c.waiting[:n:n])
	c.waiting = c.waiting[n:]
}

// fly makes one call for each group of tickets on the same terms. fly leaves out tickets
// whose caller has given up, and is bounded by the latest deadline of the rest.
func (c *combiner) fly(crowd []*ticket) {
	defer c.land()
	groups := make(map[terms][]*ticket, 1)
	var latest time.Time
	for _, t := range crowd {
		if t.gone.Load() {
			continue
		}
		groups[t.terms] = append(groups[t.terms], t)
		if t.deadline.After(latest) {
			latest = t.deadline
		}
	}
	if len(groups) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), latest)
	defer cancel()
	var order [][]*ticket
	var calls []Command
	for on, group := range groups {
		keys, args := c.call(on, group)
		order, calls = append(order, group), append(calls, c.script.call(keys, args...))
	}
	for i, r := range eval(ctx, c.conn, c.script, calls...) {
		answer(order[i], r)
	}
}

// answer gives each ticket its part of a reply.
func answer(group []*ticket, r Reply) {
	list, _ := r.Value.([]any)
	if r.Err == nil && len(list) != len(group) {
		r.Err = errReply
	}
	for i, t := range group {
		if r.Err != nil {
			t.reply <- Reply{Err: r.Err}
		} else {
			t.reply <- Reply{Value: list[i]}
		}
	}
}

// acquireMany returns the keys and arguments of acquire_many.
func (s *Store) acquireMany(on terms, group []*ticket) (keys, args []string) {
	keys = append(make([]string, 0, 3*len(group)+1), s.names.floor(""))
	d := details{s.client, on.owner, on.note}
	args = append(make([]string, 0, len(group)+5), itoa(on.weight), itoa(on.limit), micros(on.ttl), strconv.Itoa(on.span), d.String())
	for _, t := range group {
		held, places := s.names.pair(t.key)
		keys = append(keys, held, places, s.names.tomb(t.key, t.id))
		args = append(args, t.id)
	}
	return keys, args
}

// releaseMany returns the keys and arguments of release_many.
func (s *Store) releaseMany(_ terms, group []*ticket) (keys, args []string) {
	for _, t := range group {
		keys = append(keys, s.names.held(t.key))
		args = append(args, t.id)
	}
	return keys, args
}
