package memcachelock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/book"
)

const (
	minTTL = time.Second              // the grain of the server's clock
	maxTTL = 5 * 366 * 24 * time.Hour // far from the end of the server's time range
	conns  = 8                        // for each server

	youngPause = 100 * time.Millisecond // each request to a server that has just started makes a new connection
)

// Options say how a Store uses Memcached. nil means the defaults.
type Options struct {
	// Prefix stands before the names of all items, up to 60 bytes of printable
	// ASCII; "" means DefaultPrefix. Stores with the same prefix share their locks.
	Prefix string

	// User and Password are for servers that were started with -Y.
	User, Password string

	// Conns is the most connections to each server; 0 means 8.
	Conns int

	// Dial makes a connection, with TLS for example; nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Store keeps claims in Memcached, which is a cache: it may drop a claim at any time
// before the TTL has ended. A different process can then acquire the key, and the holder
// does not know until the next renewal. The package comment says what such locks are good
// for. Make a Store with New.
type Store struct {
	opts       Options
	servers    []*server
	lastWrites lastWrites
	resting    backoff.Keys
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a Store over servers, each host or host:port. The order of the servers does
// not matter, but every client must list the same servers by the same names. New does no
// I/O. Bad options, or no servers, are [driver.ErrInvalid].
//
// The Store speaks to the servers itself: the client libraries for Memcached take no
// context, and cannot send the commands of a lock in one piece.
func New(servers []string, opts *Options) (*Store, error) {
	s := &Store{}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Prefix == "" {
		s.opts.Prefix = DefaultPrefix
	}
	if s.opts.Conns <= 0 {
		s.opts.Conns = conns
	}
	if err := checkPrefix(s.opts.Prefix); err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%w: the store has no Memcached server", driver.ErrInvalid)
	}
	for _, addr := range servers {
		s.servers = append(s.servers, newServer(withPort(addr), &s.opts))
	}
	return s, nil
}

// Acquire requests a claim, as driver.Store describes.
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if err := s.check(a.Claim, false, a.Fence); err != nil {
		return driver.Grant{}, err
	}
	known := s.lastWrites.take(a.ID)
	asked := known != nil
	refused := new(lastWrite) // The next call begins with a look.
	if asked && known.cas == 0 {
		refused = known
	}
	p := &refused.place
	var rest time.Duration // until the next look, during a rest
	if !asked || p.rested {
		rest = s.resting.Look(a.Key, nextPause)
	}
	resting := rest > 0
	if resting && !(a.Wait && a.Exclusive()) {
		if a.Wait {
			s.lastWrites.put(a.ID, refused, a.TTL)
		}
		return driver.Grant{Pause: backoff.Pause, Blocked: backoff.ErrResting}, nil
	}
	p.rested = p.rested || resting
	var g driver.Grant
	var invalid error
	j := s.job(a.Key)
	look := asked || resting
	j.guess, j.short, j.fresh = !look, look && a.Exclusive(), a.ID
	if a.Wait && known == refused && !resting {
		j.marks, j.note = p.marks(&s.opts, j.item), p.note
		j.leave = func() []string { return p.leave(&s.opts, j.item) }
	}
	j.decide = func(b *book.Book, m book.Moment, since int64) bool {
		if resting && !excluded(b) {
			g = driver.Grant{Pause: rest, Next: true, Blocked: backoff.ErrResting}
			return false
		}
		if resting {
			s.resting.Over(a.Key)
		}
		// There is no queue, and no way to reserve tokens.
		g, invalid = b.Acquire(m, driver.Ask{Claim: a.Claim, Span: 1}, "")
		g.Floor = 0
		if !g.OK {
			g.Pause, g.Next = p.pause()
		}
		e := held(b, a.ID)
		if e == nil || e.Left {
			return false
		}
		if e.Since == 0 {
			e.Since = since
		}
		return true
	}
	s.run(ctx, []*job{j})
	if err := errors.Join(j.err, invalid); err != nil {
		if known == refused {
			s.lastWrites.put(a.ID, refused, a.TTL)
		}
		if a.Wait && errors.Is(err, errYoung) && j.unsure == "" {
			return driver.Grant{Pause: youngPause, Blocked: err}, nil
		}
		return driver.Grant{}, err
	}
	if j.token != 0 {
		g.Fence = j.token
	}
	switch known := j.lastWrite(); {
	case known != nil:
		s.lastWrites.put(a.ID, known, a.TTL)
	case a.Wait && !g.OK:
		s.lastWrites.put(a.ID, refused, a.TTL)
	}
	return g, nil
}

// Renew extends claims, as driver.Store describes.
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	cs, errs := make([]driver.Claim, len(rs)), make([]error, len(rs))
	for i, r := range rs {
		cs[i], errs[i] = r.Claim, s.check(r.Claim, r.Leave, r.Fence)
	}
	renew := func(b *book.Book, m book.Moment, i int) (write bool, err error) {
		e := held(b, rs[i].ID)
		left := e != nil && e.Left
		err = b.Renew(m, rs[i])
		return err == nil && !left, err
	}
	return s.each(ctx, cs, errs, renew, false)
}

// Release ends claims, as driver.Store describes.
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	cs, errs := make([]driver.Claim, len(rs)), make([]error, len(rs))
	for i, r := range rs {
		cs[i], errs[i] = r.Claim, s.check(r.Claim, false, 0)
	}
	release := func(b *book.Book, m book.Moment, i int) (write bool, err error) {
		err = b.Release(m, rs[i])
		return err == nil || rs[i].Late, err
	}
	return s.each(ctx, cs, errs, release, true)
}

// A change is the effect of a call on claim i.
type change func(b *book.Book, m book.Moment, i int) (write bool, err error)

// each changes the claims without an error, those on one key together. It returns one error
// for each claim, or nil. ends says whether the change is to end the claims.
func (s *Store) each(ctx context.Context, cs []driver.Claim, errs []error, do change, ends bool) []error {
	parts := make(map[string][]int) // by key: the indices of the claims
	var jobs []*job
	for i, c := range cs {
		if errs[i] != nil {
			continue
		}
		if parts[c.Key] == nil {
			jobs = append(jobs, s.job(c.Key))
		}
		parts[c.Key] = append(parts[c.Key], i)
	}
	for _, j := range jobs {
		s.prepare(j, cs, parts[j.key], errs, do, ends)
	}
	s.run(ctx, jobs)
	for _, j := range jobs {
		if ends && j.contended() {
			s.resting.Released(j.key)
		}
		for _, i := range parts[j.key] {
			if j.err != nil {
				errs[i] = j.err
			}
			if known := j.lastWrite(); known != nil { // The job was for this claim alone.
				s.lastWrites.put(cs[i].ID, known, cs[i].TTL)
			}
		}
	}
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}

// prepare sets up a job to change some of the claims.
func (s *Store) prepare(j *job, cs []driver.Claim, part []int, errs []error, do change, ends bool) {
	if ends {
		j.marks = []string{"mg " + s.opts.mark(j.item) + "\r\n"}
	}
	tried := make([]bool, len(part)) // an earlier decision of the job has ended this claim
	j.decide = func(b *book.Book, m book.Moment, _ int64) (write bool) {
		for n, i := range part {
			var w bool
			w, errs[i] = do(b, m, i)
			write = write || w
			switch {
			case errs[i] == nil:
				tried[n] = true
			case ends && tried[n] && j.unsure != "":
				errs[i] = nil // This call has ended the claim, but the answer was lost.
			}
		}
		return write
	}
	for _, i := range part {
		j.last = s.lastWrites.take(cs[i].ID)
		if ends && j.last != nil {
			j.marks = append(j.marks, j.last.place.leave(&s.opts, j.item)...)
		}
	}
	switch {
	case len(part) > 1:
		j.last = nil
	case !ends:
		j.fresh = cs[part[0]].ID
	}
}

func (s *Store) job(key string) *job {
	return &job{key: key, item: s.opts.item(key), clock: s.opts.clock()}
}

// check refuses a claim that the Store can never keep. leave says that the TTL may be short,
// and fence is the requested token.
func (s *Store) check(c driver.Claim, leave bool, fence uint64) error {
	switch {
	case c.TTL < minTTL && !leave || c.TTL > maxTTL:
		return fmt.Errorf("%w: a TTL of %v (Memcached counts seconds: want %v to five years)", driver.ErrInvalid, c.TTL, minTTL)
	case c.Key == "" || len(c.Key) > driver.MaxKey:
		return fmt.Errorf("%w: a key of %d bytes (want 1 to %d)", driver.ErrInvalid, len(c.Key), driver.MaxKey)
	case fence != 0:
		return fmt.Errorf("%w: a token that is asked for (Memcached gives those that it counts)", driver.ErrInvalid)
	}
	return nil
}

func held(b *book.Book, id string) *book.Entry {
	for i := range b.Held {
		if b.Held[i].ID == id {
			return &b.Held[i]
		}
	}
	return nil
}

// excluded reports whether an exclusive claim holds the key.
func excluded(b *book.Book) bool {
	return len(b.Held) == 1 && driver.Claim{Weight: b.Held[0].Weight, Limit: b.Held[0].Limit}.Exclusive()
}

// Close ends the connections. Claims stand until their TTL ends. Calls under way complete;
// later calls fail.
func (s *Store) Close() error {
	for _, server := range s.servers {
		server.close()
	}
	return nil
}

// run runs jobs: those of one server together, different servers at the same time.
func (s *Store) run(ctx context.Context, jobs []*job) {
	if len(jobs) == 1 && jobs[0].step != done {
		choose(s.servers, jobs[0].key).run(ctx, jobs)
		return
	}
	parts := make(map[*server][]*job)
	for _, j := range jobs {
		if j.step != done {
			server := choose(s.servers, j.key)
			parts[server] = append(parts[server], j)
		}
	}
	var all sync.WaitGroup
	for server, part := range parts {
		all.Go(func() { server.run(ctx, part) })
	}
	all.Wait()
}
