package zklock

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/zoo"
)

// A claim is one of this process. The fields below busy belong to who has it, the
// others are guarded by Store.mu.
type claim struct {
	driver.Claim // as it was asked for last
	session      *session
	dir          string // node of the key

	busy     chan struct{} // held by who talks to the servers about the claim
	creating *zoo.Call     // not known to be answered
	listing  *zoo.Call     // of the line, not known to be answered
	missing  int           // nodes above, as far as is known
	joined   bool          // a reader of the phase
	tried    bool          // to delete the node, with unknown success

	state    state
	node     string        // name of the node, "" if it is not known
	token    uint64        // while held
	until    time.Duration // the owner has to renew, or to ask, before
	refusal  driver.Grant  // the last
	why      error         // it is lost
	freeing  bool          // the keeper gives it back
	guarding bool          // the keeper has it watched
	guarded  bool          // its node is watched
	armed    bool          // and those that block it
	only     string        // path of the one claim before it, if nothing else need go
	front    bool          // and that has gone
	watching []string
	changes  int // of guarded and armed to false
}

type state int

const (
	asking  state = iota // for the first time
	waiting              // in line
	held
	leaving // to be given back
	lost    // known for a while, so that its id is refused
	dropped // not in the table any more
)

func (cl *claim) lock(ctx context.Context) error {
	select {
	case cl.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (cl *claim) unlock() { <-cl.busy }

// path is the path of the claim's node.
func (cl *claim) path() string { return cl.dir + "/" + cl.node }

// member is the node of a reader that holds.
func (cl *claim) member() string { return cl.dir + "/" + phaseName + "/" + driver.PublicID(cl.ID) }

// facts are what the node of a claim has for people.
type facts struct {
	Owner string `json:"owner,omitempty"`
	Note  string `json:"note,omitempty"`
	TTL   int64  `json:"ttl"` // milliseconds
}

func factsOf(c driver.Claim) string {
	text, _ := json.Marshal(facts{c.Owner, c.Note, c.TTL.Milliseconds()}) // cannot fail
	return string(text)
}

// enter returns the claim from the table, or enters it.
func (s *Store) enter(ctx context.Context, c driver.Claim, begin time.Duration) (*claim, error) {
	s.mu.Lock()
	cl := s.claims[nameOf(c)]
	s.mu.Unlock()
	if cl != nil {
		return cl, nil
	}
	k, err := s.session(ctx, c.TTL)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case k.over != nil:
		return nil, k.over
	case s.claims[nameOf(c)] != nil:
		return s.claims[nameOf(c)], nil
	}
	cl = &claim{Claim: c, session: k, dir: s.dir(c.Key), busy: make(chan struct{}, 1), until: begin + c.TTL}
	s.claims[nameOf(c)] = cl
	s.keep()
	return cl, nil
}

// drop takes a claim out of the table. Call it with mu held.
func (s *Store) drop(cl *claim) {
	cl.session.unwatch(cl)
	cl.state = dropped
	if s.claims[nameOf(cl.Claim)] == cl {
		delete(s.claims, nameOf(cl.Claim))
	}
}

// remember is how long the id of a lost claim is refused.
const remember = 11 * time.Second

// lose takes note that a claim has ended without a release. Call it with mu held.
func (s *Store) lose(cl *claim, why error) (calls calls) {
	cl.session.unwatch(cl)
	cl.state, cl.why, cl.until = lost, why, s.clock.Now()+remember
	lost := nameOf(cl.Claim) // Who asks meanwhile replaces the claim.
	for _, n := range s.notices {
		calls.losses = append(calls.losses, func() { n.lost(lost.key, lost.id, why) })
	}
	calls.wakes = s.waking(cl)
	if cl.Shared() && cl.session.over == nil && !s.closed {
		member := cl.member()
		s.background.Go(func() { s.leavePhase(cl.session, member) })
	}
	return calls
}

// acquire asks for a claim. It is not done if that has been dropped meanwhile.
func (s *Store) acquire(ctx context.Context, cl *claim, c driver.Claim, begin time.Duration) (g driver.Grant, done bool, err error) {
	s.mu.Lock()
	state, front := cl.state, cl.front && cl.guarded
	if state != dropped {
		cl.Claim = c
	}
	if state == asking {
		cl.until = begin + c.TTL
	}
	if state == waiting { // who asks is there, however the answer fails
		cl.until = max(cl.until, begin+c.Alive())
	}
	if state == waiting && cl.armed && s.waking(cl) != nil {
		cl.until = s.clock.Now() + c.Alive()
		defer s.mu.Unlock()
		return cl.refusal, true, nil
	}
	s.mu.Unlock()
	switch {
	case state == dropped:
		return g, false, nil
	case state == leaving || state == lost:
		return g, true, nil
	case state == held:
		answers, err := s.extend(ctx, []*claim{cl}, []driver.Claim{c}, begin)
		if err != nil || answers[0] != nil {
			return g, true, err
		}
		return s.grant(cl), true, nil
	case front:
		g, err = s.hold(ctx, cl, line{places: []place{{}}}, begin)
		return g, true, err
	}
	l, err := s.look(ctx, cl)
	if err != nil {
		return g, true, err
	}
	g, err = s.judge(ctx, cl, l, begin)
	return g, true, err
}

// look returns the line, in which the claim is unless somebody has ended it, or
// it was refused already. It waits on for the answer that the last look has not waited
// for: where answers are slower than callers are patient, none would get one otherwise.
func (s *Store) look(ctx context.Context, cl *claim) (line, error) {
	if cl.listing != nil && (cl.listing.Answered() || !cl.Wait) {
		cl.listing = nil // what it tells may be long past, and who waits sees to that
	}
	if err := s.resolve(ctx, cl); err != nil {
		return line{}, err
	}
	if cl.node == "" {
		return s.create(ctx, cl)
	}
	if cl.listing == nil {
		calls, err := cl.session.zoo.Send(ctx, zoo.Sync(cl.dir), zoo.List(cl.dir))
		if err != nil {
			return line{}, err
		}
		cl.listing = calls[1]
	}
	return cl.listed(ctx)
}

// listed takes the answer to the listing.
func (cl *claim) listed(ctx context.Context) (line, error) {
	l, _, err := listed(ctx, cl.listing)
	if cl.listing.Answered() {
		cl.listing = nil
	}
	return l, err
}

// glance returns the line of a key, and whether the key has a node. Who is connected to
// the leader may see what others know to be gone: see barrier.
func (k *session) glance(ctx context.Context, dir string) (l line, there bool, err error) {
	return k.listAfter(ctx, zoo.Sync(dir), dir)
}

// list is glance that shows all that was done before the call.
func (k *session) list(ctx context.Context, dir string) (l line, there bool, err error) {
	return k.listAfter(ctx, barrier(dir), dir)
}

func (k *session) listAfter(ctx context.Context, first zoo.Request, dir string) (l line, there bool, err error) {
	calls, err := k.zoo.Send(ctx, first, zoo.List(dir))
	if err != nil {
		return l, false, err
	}
	return listed(ctx, calls[1])
}

// listed takes the answer to a List of the nodes of a key.
func listed(ctx context.Context, call *zoo.Call) (l line, there bool, err error) {
	switch err := call.Wait(ctx); {
	case errors.Is(err, zoo.NoNode):
		return l, false, nil
	case err != nil:
		return l, false, err
	}
	return parseLine(call.Children()), true, nil
}

// create makes the claim's node. One that would not wait is not made if it would
// be refused.
func (s *Store) create(ctx context.Context, cl *claim) (line, error) {
	if !cl.Wait {
		blocked := func(l line) bool { return l.with(cl.Claim).blockers(len(l.places)) != nil }
		l, there, err := cl.session.glance(ctx, cl.dir)
		if err == nil && blocked(l) {
			l, there, err = cl.session.list(ctx, cl.dir)
		}
		if err != nil || blocked(l) {
			return l, err
		}
		if !there {
			cl.missing = max(cl.missing, 1)
		}
	}
	for {
		calls, err := cl.session.zoo.Send(ctx, s.node(cl), zoo.List(cl.dir))
		if err != nil {
			return line{}, err
		}
		cl.creating, cl.listing = calls[0], calls[1]
		tried := cl.missing
		if err = s.created(ctx, cl); err == nil {
			return cl.listed(ctx)
		}
		if cl.missing == tried {
			return line{}, err
		}
	}
}

// node makes the node of a claim. Those above it are made together with it: one that
// never had a child would stay for ever.
func (s *Store) node(cl *claim) zoo.Request {
	path, data := cl.dir+"/"+placeName(cl.Claim), factsOf(cl.Claim)
	if cl.missing == 0 {
		return zoo.Create(path, data, s.acl, zoo.Ephemeral)
	}
	above := parents(path)
	return zoo.CreateAll(above[len(above)-cl.missing:], path, data, s.acl, zoo.Ephemeral)
}

// created takes the answer to the making of a node, if it is here by the end of
// ctx. The nodes above may have gone, since the servers remove those that are empty,
// and others may have made them.
func (s *Store) created(ctx context.Context, cl *claim) error {
	err := cl.creating.Wait(ctx)
	var code zoo.Code
	switch {
	case err == nil:
		path, zxid := cl.creating.Made()
		s.mu.Lock()
		cl.node, cl.token = path[len(cl.dir)+1:], tokenOf(zxid)
		s.mu.Unlock()
	case !errors.As(err, &code):
		return err // It may still be made, or have been.
	case code == zoo.NoNode && cl.missing < len(parents(cl.path())):
		cl.missing++
	case code == zoo.NodeExists && cl.missing > 0:
		cl.missing--
	}
	cl.creating = nil
	return err
}

// resolve finds out whether a node was made whose making was not answered.
func (s *Store) resolve(ctx context.Context, cl *claim) error {
	if cl.creating == nil {
		return nil
	}
	err := s.created(ctx, cl)
	switch {
	case cl.creating == nil:
		return nil // answered, one way or the other
	case !errors.Is(err, zoo.ErrUnknown):
		return err
	}
	return s.find(ctx, cl)
}

// find looks for the node of a claim by its name and its session. The first in
// line is the claim's; there should be no others, for one would wait for the other.
func (s *Store) find(ctx context.Context, cl *claim) error {
	l, _, err := cl.session.list(ctx, cl.dir)
	if err != nil {
		return err
	}
	var name string
	var token uint64
	for _, p := range l.places {
		if p.id != driver.PublicID(cl.ID) {
			continue
		}
		path := cl.dir + "/" + p.name
		call, err := cl.session.ask(ctx, zoo.Exists(path))
		if err == nil && call.Stat().Owner == cl.session.zoo.ID() {
			if name == "" {
				name, token = p.name, tokenOf(call.Stat().Czxid)
				continue
			}
			_, err = cl.session.ask(ctx, zoo.Delete(path))
		}
		if err != nil && !errors.Is(err, zoo.NoNode) {
			return err
		}
	}
	if name != "" {
		s.mu.Lock()
		cl.node, cl.token = name, token
		s.mu.Unlock()
	}
	cl.creating = nil
	return nil
}
