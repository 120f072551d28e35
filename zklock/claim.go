package zklock

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// A claim is a claim of this process. The fields below busy belong to the holder of
// busy, up to the blank line. The remaining fields are guarded by Store.mu.
type claim struct {
	driver.Ask // as last requested
	session    *session
	dir        string // node of the key

	busy     chan struct{} // held while talking to the servers about the claim
	creating *zoo.Call     // not known to be answered
	listing  *zoo.Call     // of the queue, not known to be answered
	missing  int           // missing parent nodes, as far as known
	joined   bool          // a reader in the phase
	tried    bool          // to delete the node, with unknown success

	state      state
	node       string        // name of the node, "" if not known
	token      uint64        // while held
	until      time.Duration // the owner must renew or request before
	refusal    driver.Grant  // the last refusal
	why        error         // why the claim is lost
	cleaning   bool          // the cleaner is releasing the claim
	rewatching bool          // the cleaner is setting the watch on the node
	onlyAhead  string        // path of the only claim ahead, if no other claim need go
	watches    watches
	changes    int // how often watches.node and watches.ahead became false
}

// watches are the ZooKeeper watches of a claim.
type watches struct {
	paths []string // of the watched nodes
	node  bool     // the node of the claim is watched
	ahead bool     // the blockers are watched, too
	first bool     // the only claim ahead has gone
}

// unwatchedLocked records that no node is watched for the claim.
func (cl *claim) unwatchedLocked() {
	cl.watches = watches{}
	cl.changes++
}

type state int

const (
	asking  state = iota // the first request is not yet answered
	waiting              // in the queue
	held
	ending  // to be released
	lost    // kept for a while, so the id is refused
	dropped // no longer in the table
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

// path returns the path of the claim's node.
func (cl *claim) path() string { return cl.dir + "/" + cl.node }

// member returns the path of the node of a reader that holds.
func (cl *claim) member() string { return cl.dir + "/" + phaseName + "/" + driver.PublicID(cl.ID) }

// facts are the contents of a claim's node, for people.
type facts struct {
	Owner string `json:"owner,omitempty"`
	Note  string `json:"note,omitempty"`
	TTL   int64  `json:"ttl"` // milliseconds
}

func factsOf(c driver.Claim) string {
	text, _ := json.Marshal(facts{c.Owner, c.Note, c.TTL.Milliseconds()}) // cannot fail
	return string(text)
}

// enter returns the claim from the table; a missing claim is added.
func (s *Store) enter(ctx context.Context, a driver.Ask, begin time.Duration) (*claim, error) {
	name := nameOf(a.Claim)
	s.mu.Lock()
	cl := s.claims[name]
	s.mu.Unlock()
	if cl != nil {
		return cl, nil
	}
	k, err := s.session(ctx, a.TTL)
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
	case s.claims[name] != nil:
		return s.claims[name], nil
	}
	cl = &claim{Ask: a, session: k, dir: s.dir(a.Key), busy: make(chan struct{}, 1), until: begin + a.TTL}
	s.claims[name] = cl
	s.startCleanerLocked()
	return cl, nil
}

// dropLocked removes a claim from the table.
func (s *Store) dropLocked(cl *claim) {
	cl.session.unwatchLocked(cl)
	cl.state = dropped
	if s.claims[nameOf(cl.Claim)] == cl {
		delete(s.claims, nameOf(cl.Claim))
	}
}

// remember is how long the id of a lost claim is refused.
const remember = 11 * time.Second

// loseLocked records that a claim has ended without a release.
func (s *Store) loseLocked(cl *claim, why error) (after notices) {
	cl.session.unwatchLocked(cl)
	cl.state, cl.why, cl.until = lost, why, s.clock.Now()+remember
	if !s.closed {
		lost := nameOf(cl.Claim) // A new request may replace the claim meanwhile.
		after.losses = append(after.losses, func() { s.losses.Tell(lost.key, lost.id, why) })
	}
	after.wakes = s.wakingLocked(cl)
	if cl.Shared() && cl.session.over == nil && !s.closed {
		member := cl.member()
		s.background.Go(func() { s.leavePhase(cl.session, member) })
	}
	return after
}

// acquire requests a claim. done is false if the claim has been dropped meanwhile.
func (s *Store) acquire(ctx context.Context, cl *claim, a driver.Ask, begin time.Duration) (g driver.Grant, done bool, err error) {
	s.mu.Lock()
	state, front := cl.state, cl.watches.first && cl.watches.node
	if state != dropped {
		cl.Ask = a
	}
	if state == asking {
		cl.until = begin + a.TTL
	}
	if state == waiting { // the caller is alive, even if the answer fails
		cl.until = max(cl.until, begin+a.Alive())
	}
	if state == waiting && cl.watches.ahead && s.wakingLocked(cl) != nil {
		cl.until = s.clock.Now() + a.Alive()
		defer s.mu.Unlock()
		return cl.refusal, true, nil
	}
	s.mu.Unlock()
	switch {
	case state == dropped:
		return g, false, nil
	case state == ending || state == lost:
		return g, true, nil
	case state == held:
		answers, err := s.extend(ctx, []*claim{cl}, []time.Duration{a.TTL}, begin)
		if err != nil || answers[0] != nil {
			return g, true, err
		}
		return s.grant(cl), true, nil
	case front:
		g, err = s.hold(ctx, cl, queue{places: []place{{}}}, begin)
		return g, true, err
	}
	q, err := s.look(ctx, cl)
	if err != nil {
		return g, true, err
	}
	g, err = s.decide(ctx, cl, q, begin)
	return g, true, err
}

// look returns the queue. The queue contains the claim, unless the claim was ended or
// already refused. If the last look gave up before its listing was answered, look waits
// on for that answer. If answers are slower than callers are patient, no caller would get
// an answer otherwise.
func (s *Store) look(ctx context.Context, cl *claim) (queue, error) {
	if cl.listing != nil && (cl.listing.Answered() || !cl.Wait) {
		cl.listing = nil // the answer may be outdated, and only a waiter would notice
	}
	if err := s.resolve(ctx, cl); err != nil {
		return queue{}, err
	}
	if cl.node == "" {
		return s.create(ctx, cl)
	}
	if cl.listing == nil {
		calls, err := cl.session.zoo.Send(ctx, zoo.Sync(cl.dir), zoo.List(cl.dir))
		if err != nil {
			return queue{}, err
		}
		cl.listing = calls[1]
	}
	return cl.listed(ctx)
}

// listed returns the answer to the pending listing.
func (cl *claim) listed(ctx context.Context) (queue, error) {
	q, _, err := listed(ctx, cl.listing)
	if cl.listing.Answered() {
		cl.listing = nil
	}
	return q, err
}

// list returns the queue of a key, and whether the key has a node. list sees every change
// made before the call.
func (k *session) list(ctx context.Context, dir string) (q queue, there bool, err error) {
	return k.listAfter(ctx, barrier(dir), dir)
}

// listAfter is list after another request than a barrier.
func (k *session) listAfter(ctx context.Context, first zoo.Request, dir string) (q queue, there bool, err error) {
	calls, err := k.zoo.Send(ctx, first, zoo.List(dir))
	if err != nil {
		return q, false, err
	}
	return listed(ctx, calls[1])
}

// listed returns the answer to a List of the nodes of a key.
func listed(ctx context.Context, call *zoo.Call) (q queue, there bool, err error) {
	switch err := call.Wait(ctx); {
	case errors.Is(err, zoo.NoNode):
		return q, false, nil
	case err != nil:
		return q, false, err
	}
	return parseQueue(call.Children()), true, nil
}

// create creates the claim's node. If a claim that does not wait would be refused,
// create does not create the node.
func (s *Store) create(ctx context.Context, cl *claim) (queue, error) {
	if !cl.Wait {
		blocked := func(q queue) bool { return q.newest > 0 || q.with(cl.Claim).blockers(len(q.places)) != nil }
		// After a sync alone, a client connected to the leader may see nodes that other
		// clients know to be gone: see barrier.
		q, there, err := cl.session.listAfter(ctx, zoo.Sync(cl.dir), cl.dir)
		if err == nil && blocked(q) {
			q, there, err = cl.session.list(ctx, cl.dir)
		}
		if err != nil || blocked(q) {
			return q, err
		}
		if !there {
			cl.missing = max(cl.missing, 1)
		}
	}
	for {
		calls, err := cl.session.zoo.Send(ctx, s.node(cl), zoo.List(cl.dir))
		if err != nil {
			return queue{}, err
		}
		cl.creating, cl.listing = calls[0], calls[1]
		tried := cl.missing
		if err = s.created(ctx, cl); err == nil {
			return cl.listed(ctx)
		}
		if cl.missing == tried {
			return queue{}, err
		}
	}
}

// node returns the request that creates the node of a claim, together with missing
// parent nodes. A container that never had a child would stay for ever.
func (s *Store) node(cl *claim) zoo.Request {
	path, data := cl.dir+"/"+placeName(cl.Claim), factsOf(cl.Claim)
	if cl.missing == 0 {
		return zoo.Create(path, data, s.acl, zoo.Ephemeral)
	}
	above := parents(path)
	return zoo.CreateAll(above[len(above)-cl.missing:], path, data, s.acl, zoo.Ephemeral)
}

// created handles the answer to the creation of a node, if the answer arrives before
// ctx ends. The servers may have removed empty parent nodes, and other clients may have
// created them.
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
		return err // The node may still be created, or have been.
	case code == zoo.NoNode && cl.missing < len(parents(cl.path())):
		cl.missing++
	case code == zoo.NodeExists && cl.missing > 0:
		cl.missing--
	}
	cl.creating = nil
	return err
}

// resolve finds out whether an unanswered creation has created the node.
func (s *Store) resolve(ctx context.Context, cl *claim) error {
	if cl.creating == nil {
		return nil
	}
	err := s.created(ctx, cl)
	switch {
	case cl.creating == nil:
		return nil // answered: created or refused
	case !errors.Is(err, zoo.ErrUnknown):
		return err
	}
	return s.find(ctx, cl)
}

// find finds the node of a claim by its name and its session. The first node in the
// queue is the claim's. Further nodes of the claim are deleted, because one node would
// wait for the other.
func (s *Store) find(ctx context.Context, cl *claim) error {
	q, _, err := cl.session.list(ctx, cl.dir)
	if err != nil {
		return err
	}
	var name string
	var token uint64
	for _, p := range q.places {
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
