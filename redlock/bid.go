package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A bid is one Acquire on its way to a majority.
type bid struct {
	*Store
	ask     driver.Ask // as sent to the nodes
	began   time.Time
	votes   []vote // by node
	answers chan answer[vote]
	open    bool // the bid has ended, but its contest has not
	over    atomic.Bool
}

// A vote is the answer of a node to a bid.
type vote struct {
	kind  kind
	grant driver.Grant
	least uint64    // the smallest token with which the vote counts
	won   uint64    // the token of the held claim, if the node is of the claim's majority
	sent  time.Time // when the node was asked
	err   error
}

type kind int

const (
	unasked kind = iota
	asked
	granted
	refused
	failed // the answer does not count; the node may hold the claim all the same
)

// Acquire implements [driver.Store].
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if err := s.admissible(a.Claim); err != nil {
		return driver.Grant{}, err
	}
	if err := s.enter(ctx, a.ID); err != nil {
		return driver.Grant{}, err
	}
	defer s.leave(a.ID)
	b := &bid{
		Store: s, ask: a, began: time.Now(),
		votes: make([]vote, len(s.nodes)), answers: make(chan answer[vote], len(s.nodes)),
	}
	b.ask.Fence, b.ask.Span = s.clock.next(a.Fence, a.Span)
	defer b.over.Store(true)
	g, err := b.run(ctx)
	s.report(b)
	return g, err
}

// enter lets one bid at a time begin for an id.
func (s *Store) enter(ctx context.Context, id string) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		before := s.bids[id]
		if before == nil {
			s.bids[id] = make(chan struct{})
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
		}
	}
}

func (s *Store) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.bids[id])
	delete(s.bids, id)
}

// run makes rounds until the answers of the nodes make a yes or a no.
func (b *bid) run(ctx context.Context) (driver.Grant, error) {
	var c contest
	for {
		began := time.Now()
		b.round(ctx)
		if b.agree(ctx) {
			return b.granted(), nil
		}
		cut, yes := ctx.Err(), b.count(granted)
		if yes+b.count(refused) < b.majority() || cut != nil && yes >= b.majority() {
			return driver.Grant{}, b.tooFew(cut)
		}
		if !b.contends(ctx, &c, time.Since(began)) {
			if b.ask.Wait {
				b.drain(b.grantedLate)
			} else {
				b.withdraw()
			}
			return b.refusal(), nil
		}
	}
}

// round asks the nodes that have not granted the claim. It returns when more answers would
// change nothing, or the context ends.
func (b *bid) round(ctx context.Context) {
	b.send()
	began := time.Now()
	var enough, half <-chan time.Time
	for b.count(asked) > 0 && !b.won() {
		if enough == nil && b.enough() {
			enough = grace(began, b.patience())
		}
		if half == nil && b.count(granted) >= b.majority() {
			half = time.After(remaining(ctx) / 2) // The other half is for a raise of the token.
		}
		select {
		case a := <-b.answers:
			b.votes[a.index] = b.judge(a)
		case <-enough:
			return
		case <-half:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (b *bid) send() {
	ctx, end := b.limit(nodeLimit, len(b.nodes)-b.count(asked)-b.count(granted))
	for i, n := range b.nodes {
		if k := b.votes[i].kind; k == asked || k == granted {
			continue
		}
		b.votes[i] = vote{kind: asked}
		q, own := n.request(b.ask.ID)
		began := b.spawn(func() {
			defer end()
			if own {
				n.acquire(ctx, b.ask, q)
			}
			<-q.done
			sent := q.sent
			if !own && q.err == nil && q.grant.OK && b.ask.Shared() {
				// The answer to an earlier bid may be older than the raise of a reader
				// that was granted before this bid began.
				if later, ok := n.again(b.ask, &b.over); ok {
					q = later
				}
			}
			b.answers <- answer[vote]{n, vote{grant: q.grant, least: q.least, won: q.won, sent: sent, err: q.forgetful}, q.err}
		})
		if !began {
			if own {
				q.err = errClosed
				n.complete(b.ask.Claim, q)
			}
			b.answers <- answer[vote]{node: n, err: errClosed}
			end()
		}
	}
}

// judge makes a vote of the answer of a node.
func (b *bid) judge(a answer[vote]) vote {
	v := a.value
	v.kind = refused
	fence, span := v.grant.Holder.Fence, 1
	if v.grant.OK {
		v.kind, fence, span = granted, v.grant.Fence, v.grant.Span
	}
	sane := b.clock.see(fence, span) && b.clock.see(v.least, 1)
	switch {
	case a.err != nil:
		v.err = a.err
	case !v.grant.OK:
	case v.err != nil:
	case !sane:
		v.err = fmt.Errorf("has given token %d, which is more than a day ahead; is a clock wrong?", fence)
	case fence == 0:
		v.err = errors.New("has no fencing tokens")
	}
	if v.err != nil {
		v.kind, v.err = failed, a.named(v.err)
	}
	return v
}

func (b *bid) count(k kind) (n int) {
	for i := range b.votes {
		if b.votes[i].kind == k {
			n++
		}
	}
	return n
}

// won reports whether a majority has granted the claim with one token.
func (b *bid) won() bool {
	_, n := b.token()
	return n >= b.majority()
}

// enough reports whether the answers are enough, though all answers would be better. One more
// answer may save a second round. The queues agree better if more nodes know a queued claim
// before the caller does. A refusal then names the holders on all nodes.
//
// A reader needs more: the token of a majority of the nodes, if there is such a token. A
// held claim needs its own token.
func (b *bid) enough() bool {
	yes, no, open := b.count(granted), b.count(refused), b.count(asked)
	return yes >= b.majority() && !b.ask.Shared() && !b.mayKeep() || yes+open < b.majority() && (yes+no >= b.majority() || yes+no+open < b.majority())
}

// mayKeep reports whether the claim is held already, and may keep its token if the nodes
// that have not answered yet confirm the token. The nodes have until nodeLimit, or half of the
// caller's time.
func (b *bid) mayKeep() bool {
	for i := range b.votes {
		v := &b.votes[i]
		if v.kind == granted && v.won == v.grant.Fence && b.given(v.won)+b.count(asked) >= b.majority() {
			return true
		}
	}
	return false
}

// patience is how long the slower nodes have at least. Tokens that differ are rare. Several
// calls for one claim should count the same nodes: then the calls come to one token.
func (b *bid) patience() time.Duration {
	if b.count(granted) >= b.majority() {
		return 10 * time.Millisecond
	}
	return time.Millisecond
}

// token returns the token that most nodes have given, and how many nodes have given the
// token and need no larger token.
func (b *bid) token() (token uint64, nodes int) {
	for i := range b.votes {
		if v := &b.votes[i]; v.kind == granted {
			if n := b.given(v.grant.Fence); n > nodes {
				token, nodes = v.grant.Fence, n
			}
		}
	}
	return token, nodes
}

// given returns how many nodes have given the token and need no larger token.
func (b *bid) given(token uint64) (nodes int) {
	for i := range b.votes {
		if v := &b.votes[i]; v.kind == granted && v.grant.Fence == token && v.least <= token {
			nodes++
		}
	}
	return nodes
}

// agree gives the claim one token at a majority of its nodes: the largest token or least
// among the votes. It reports whether a majority has the token.
func (b *bid) agree(ctx context.Context) bool {
	var token uint64
	for i := range b.votes {
		if b.votes[i].kind == granted {
			token = max(token, b.votes[i].grant.Fence, b.votes[i].least)
		}
	}
	if b.won() || b.count(granted) < b.majority() {
		return b.won()
	}
	b.clock.see(token, b.ask.Span)
	var lower []*node
	for i, n := range b.nodes {
		if b.votes[i].kind == granted && b.votes[i].grant.Fence < token {
			lower = append(lower, n)
		}
	}
	answers := each(b.Store, nodeLimit, lower, func(ctx context.Context, n *node) (any, error) {
		return nil, n.raise(ctx, b.ask, token, &b.over)
	})
	for range lower {
		select {
		case a := <-answers:
			b.votes[a.index].raised(a.node, token, a.err)
		case <-ctx.Done():
			return false
		}
		if b.won() || b.count(granted) < b.majority() {
			break
		}
	}
	return b.won()
}

// raised enters the answer of a node to a raise.
func (v *vote) raised(n *node, token uint64, err error) {
	switch {
	case err == nil:
		v.grant.Fence = token
	case errors.Is(err, driver.ErrLost): // The claim has expired since.
		*v = vote{kind: refused}
	default:
		v.kind, v.err = failed, n.named(err)
	}
}

// granted is the grant of a majority with one token. The grant stands for as long as the
// shortest grant of a node, counted from when the bid began.
func (b *bid) granted() driver.Grant {
	token, _ := b.token()
	g := driver.Grant{OK: true, Fence: token, Span: driver.MaxSpan}
	for i := range b.votes {
		v := &b.votes[i]
		if v.kind != granted || v.grant.Fence != token {
			continue
		}
		b.nodes[i].won(b.ask.ID, token)
		g.Span = min(g.Span, max(v.grant.Span, 1))
		if ttl := v.grant.TTL; ttl > 0 {
			ttl = min(ttl, ttl-b.began.Sub(v.sent))
			if g.TTL == 0 || ttl < g.TTL {
				g.TTL = ttl
			}
		}
	}
	return g
}

// drain passes to f the answers that come when the bid is over.
func (b *bid) drain(f func(*node, vote)) {
	open := b.count(asked)
	if open == 0 {
		return
	}
	b.spawn(func() {
		for range open {
			a := <-b.answers
			f(a.node, b.judge(a))
		}
	})
}

// withdraw releases the claim on every node that has granted it, or may still grant it.
func (b *bid) withdraw() {
	release := func(n *node, v vote) {
		if v.kind == granted || v.kind == failed && !v.sent.IsZero() {
			rs := []driver.Release{{Claim: b.ask.Claim}}
			n.announce(rs)
			b.spawn(func() {
				ctx, end := b.limit(nodeLimit, 1)
				defer end()
				_, _ = n.release(ctx, rs)
			})
		}
	}
	for i, n := range b.nodes {
		release(n, b.votes[i])
	}
	b.drain(release)
}

// tooFew is the error of a bid whose outcome is unknown.
func (b *bid) tooFew(cut error) error {
	e := &tooFewError{answered: b.count(granted) + b.count(refused), nodes: len(b.nodes)}
	invalid := 0
	for i := range b.votes {
		err := b.votes[i].err
		switch {
		case errors.Is(err, driver.ErrInvalid):
			invalid++
			e.errs = append(e.errs, errors.New(err.Error()))
		case errors.Is(err, driver.ErrLost):
			e.errs = append(e.errs, errors.New(err.Error())) // lost there, not necessarily on a majority
		case err != nil:
			e.errs = append(e.errs, err)
		}
		if blocks(invalid, len(b.nodes)) {
			b.withdraw()
			return err
		}
	}
	if cut != nil {
		e.errs = append(e.errs, cut)
	}
	return e
}
