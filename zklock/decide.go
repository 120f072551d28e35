package zklock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// span is how many tokens a claim may have, for hand-offs within a process.
const span = 64

// tokenOf returns the first token of a claim, given the transaction that created the
// node. The upper half of zxid counts elections: tokens stay below 2^53 for 32,768
// elections.
func tokenOf(zxid int64) uint64 { return uint64(zxid) * span }

// countable fails if the span of a token does not stay below 2^53.
func countable(token uint64) error {
	if token > 1<<53-span {
		return fmt.Errorf("%w: ZooKeeper is at transaction %#x, which leaves no fencing tokens below 2^53 (want one below %#x: an ensemble with empty data begins anew)", driver.ErrInvalid, token/span, 1<<53/span)
	}
	return nil
}

// looks is how often decide looks at a queue that changes meanwhile.
const looks = 3

// decide grants or refuses a claim by its place in the queue.
func (s *Store) decide(ctx context.Context, cl *claim, q queue, begin time.Duration) (driver.Grant, error) {
	for n := 1; ; n++ {
		if err := q.unread(cl.Key); err != nil {
			return driver.Grant{}, err
		}
		at := q.index(cl.node)
		switch {
		case cl.node == "":
			return s.refuse(ctx, cl, q)
		case at < 0:
			s.mu.Lock()
			after := s.loseLocked(cl, driver.ErrBroken)
			s.mu.Unlock()
			after.send()
			return driver.Grant{}, nil
		}
		blockers := q.blockers(at)
		switch {
		case blockers == nil:
			return s.hold(ctx, cl, q, begin)
		case !cl.Wait:
			return s.refuse(ctx, cl, q)
		}
		g, err := s.wait(ctx, cl, q, at, blockers)
		if !errors.Is(err, zoo.NoNode) {
			return g, err
		}
		if n == looks {
			return g, nil // the waiter will request again
		}
		if q, _, err = cl.session.list(ctx, cl.dir); err != nil {
			return driver.Grant{}, err
		}
	}
}

// hold makes a claim a holder.
func (s *Store) hold(ctx context.Context, cl *claim, q queue, begin time.Duration) (driver.Grant, error) {
	token, err := cl.token, countable(cl.token)
	switch {
	case err != nil:
	case cl.Shared():
		token, err = s.join(ctx, cl, q)
	case cl.Exclusive() && q.phase:
		err = cl.endPhase(ctx)
	case !cl.Exclusive() && q.readers(cl.node):
		err = cl.mark(ctx)
	}
	if err != nil {
		return driver.Grant{}, err
	}
	if until := begin + min(cl.TTL, cl.session.cover()); cl.session.zoo.Trust() < until {
		if err := cl.session.zoo.Prove(ctx, until); err != nil {
			return driver.Grant{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case cl.state == dropped:
		return driver.Grant{}, cl.session.over
	case cl.state > held:
		return driver.Grant{}, nil
	}
	cl.state, cl.token, cl.until = held, token, begin+cl.TTL
	return s.grantOfLocked(cl), nil
}

func (s *Store) grant(cl *claim) driver.Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grantOfLocked(cl)
}

// grantOfLocked returns the grant of a claim that holds.
func (s *Store) grantOfLocked(cl *claim) driver.Grant {
	g := driver.Grant{OK: true, Fence: cl.token, Span: 1, TTL: min(cl.TTL, cl.session.cover())}
	if cl.Exclusive() { // The token after a slot's may be that of readers: see phaseName.
		g.Span = min(max(cl.Span, 1), span)
	}
	return g
}

// refuse refuses a claim that does not wait, and removes its node, if created.
func (s *Store) refuse(ctx context.Context, cl *claim, q queue) (driver.Grant, error) {
	s.mu.Lock()
	cl.state, cl.until = max(cl.state, ending), s.clock.Now() // at once, if the removal fails
	s.mu.Unlock()
	requests := []zoo.Request{zoo.Get(cl.dir + "/" + q.places[0].name)}
	if cl.node != "" {
		requests = append(requests, zoo.Delete(cl.path()))
	}
	calls, err := cl.session.zoo.Send(ctx, requests...)
	if err != nil {
		return driver.Grant{}, err
	}
	if err := calls[len(calls)-1].Wait(ctx); err != nil && !errors.Is(err, zoo.NoNode) {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	s.dropLocked(cl)
	s.mu.Unlock()
	return refusal(ctx, calls[0], q.places[0]), nil
}

// cancel ends the request for a claim, and removes its node, if created.
func (s *Store) cancel(ctx context.Context, cl *claim) error {
	s.mu.Lock()
	cl.state, cl.until = max(cl.state, ending), s.clock.Now() // at once, if the removal fails
	s.mu.Unlock()
	if cl.node != "" {
		if err := s.remove(ctx, cl); err != nil && !errors.Is(err, driver.ErrLost) {
			return err
		}
	}
	s.mu.Lock()
	s.dropLocked(cl)
	s.mu.Unlock()
	return nil
}

// refusal describes the claim in the way, if its node can still be read.
func refusal(ctx context.Context, call *zoo.Call, p place) (g driver.Grant) {
	if call.Wait(ctx) != nil {
		return g
	}
	text, stat := call.Data()
	var f facts
	_ = json.Unmarshal([]byte(text), &f) // for people: better less than nothing
	g.Left = time.Duration(f.TTL) * time.Millisecond
	g.Holder = p.holder(f, stat)
	return g
}

// holder returns the public facts of a claim.
func (p place) holder(f facts, stat zoo.Stat) driver.Holder {
	h := driver.Holder{ID: p.id, Owner: f.Owner, Note: f.Note, Since: stat.Created, Weight: p.weight, Limit: p.limit}
	if !p.shared() {
		h.Fence = tokenOf(stat.Czxid)
	}
	return h
}

// wait lets a claim wait, and watches its node and the blockers. The error is NoNode
// if a watched node has gone since.
func (s *Store) wait(ctx context.Context, cl *claim, q queue, at int, blockers []place) (driver.Grant, error) {
	s.mu.Lock()
	if cl.state > held {
		s.mu.Unlock()
		return driver.Grant{}, nil
	}
	cl.session.unwatchLocked(cl)
	cl.state, cl.until, cl.onlyAhead = waiting, s.clock.Now()+cl.Alive(), ""
	if at == 1 && cl.Exclusive() && q.places[0].exclusive() && !q.phase {
		cl.onlyAhead = cl.dir + "/" + q.places[0].name
	}
	cl.session.watchLocked(cl, cl.path())
	requests := []zoo.Request{zoo.Get(cl.dir + "/" + q.places[0].name), zoo.Watch(cl.path())}
	for _, p := range blockers {
		path := cl.dir + "/" + p.name
		cl.session.watchLocked(cl, path)
		requests = append(requests, zoo.Watch(path))
	}
	changes := cl.changes
	s.mu.Unlock()
	calls, err := cl.session.zoo.Send(ctx, requests...)
	if err != nil {
		return driver.Grant{}, err
	}
	for _, call := range calls[1:] {
		if err := call.Wait(ctx); err != nil {
			return driver.Grant{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cl.changes == changes {
		cl.watches.node, cl.watches.ahead = true, true
	}
	cl.refusal = refusal(ctx, calls[0], q.places[0])
	return cl.refusal, nil
}
