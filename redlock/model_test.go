package redlock_test

import (
	"cmp"
	"slices"
	"testing"
)

// These tests search every possible run of two clients that ask three nodes for the same
// key. Requests arrive in any order and as late as they like, also after their client is
// done. A node may let go of a claim at any moment, so that no result depends on a clock.
// Answers are counted in any order. The violation is a token that was given twice, or a
// token no larger than an earlier token whose grant was complete before its own grant
// began.
//
// The letters are those of the protocols that were tried. M is the one that
// this package uses; the others show that no part of it can be left out.

const (
	nodes   = 3
	quorum  = 2
	clients = 2
	highest = 2 // proposal
)

// A variant says what clients and nodes do.
type variant struct {
	propose bool  // a client proposes a token, which a node gives if it is larger than all before
	write   write // what a client writes back after the first round
	owned   bool  // a node takes that only while it holds the client's claim
	counted bool  // only the nodes that were counted in the first round are written to
	exact   bool  // a node's yes counts only if its claim has then just the token written
	repeats int8  // how many requests the network may deliver twice
	forgets int8  // how often a node may restart without its memory
}

type write int

const (
	nothing   write = iota
	larger          // the largest answer and one, always
	unlessOne       // the largest answer, unless all are the same
)

// A state is a moment of the whole. It is a key of the visited.
type state struct {
	nodes   [nodes]node // which is which does not matter, so they are sorted
	clients [clients]client
	repeats int8
	forgets int8
}

type node struct {
	owner int8 // 1 and up, 0 for nobody
	floor int8 // the highest token given
	token int8 // the owner's
	links [clients]link
}

// A link is what is under way between a node and a client.
type link struct {
	ask, copy, write progress
	token            int8 // the answer to ask
}

type progress int8

const (
	none progress = iota
	sent          // and perhaps never to arrive
	yes
	counted
)

type phase int8

const (
	idle phase = iota
	asking
	writing
	done
)

type client struct {
	phase    phase
	proposal int8
	after    int8 // the largest token that was complete when it began
	token    int8
}

// number is different for nodes that differ.
func (n node) number() (sum int64) {
	sum = int64(n.owner)<<16 | int64(n.floor)<<8 | int64(n.token)
	for _, l := range n.links {
		sum = sum<<10 | int64(l.ask)<<8 | int64(l.copy)<<6 | int64(l.write)<<4 | int64(l.token)
	}
	return sum
}

// A search explores every state that can be reached.
type search struct {
	variant
	seen     map[state]struct{}
	todo     []state
	violated bool
}

// holds reports whether a variant keeps its promise in every state, and how
// many states there are, or were until it was broken.
func (v variant) holds() (bool, int) {
	s := &search{variant: v, seen: make(map[state]struct{})}
	for bits := range 1 << nodes {
		var first state
		first.repeats, first.forgets = v.repeats, v.forgets
		for n := range first.nodes {
			first.nodes[n].floor = int8(bits >> n & 1)
		}
		s.visit(first)
	}
	for len(s.todo) > 0 && !s.violated {
		next := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		for n := range nodes {
			s.fail(next, n)
			for c := range clients {
				s.asked(next, n, c)
				s.copied(next, n, c)
				s.count(next, n, c)
				s.written(next, n, c)
			}
		}
		for c := range clients {
			s.begin(next, c)
			s.decide(next, c)
			s.complete(next, c)
		}
	}
	return !s.violated, len(s.seen)
}

func (s *search) visit(next state) {
	slices.SortFunc(next.nodes[:], func(a, b node) int { return cmp.Compare(a.number(), b.number()) })
	if _, known := s.seen[next]; !known {
		s.seen[next] = struct{}{}
		s.todo = append(s.todo, next)
	}
}

// fail lets a claim on a node end, or the node forget everything.
func (s *search) fail(st state, n int) {
	at := &st.nodes[n]
	if at.owner != 0 {
		at.owner, at.token = 0, 0
		s.visit(st)
	}
	if st.forgets > 0 {
		st.forgets--
		at.owner, at.token, at.floor = 0, 0, 0
		s.visit(st)
	}
}

// begin lets a client ask all nodes.
func (s *search) begin(st state, c int) {
	me := &st.clients[c]
	if me.phase != idle {
		return
	}
	me.phase = asking
	for n := range nodes {
		st.nodes[n].links[c].ask = sent
	}
	for _, other := range st.clients {
		if other.phase == done {
			me.after = max(me.after, other.token)
		}
	}
	if !s.propose {
		s.visit(st)
		return
	}
	for me.proposal = 1; me.proposal <= highest; me.proposal++ {
		s.visit(st)
	}
}

// asked lets a request of the first round arrive.
func (s *search) asked(st state, n, c int) {
	at, way := &st.nodes[n], &st.nodes[n].links[c]
	if way.ask != sent {
		return
	}
	way.ask = none
	if at.owner == 0 {
		s.grant(&st, n, c)
		if st.clients[c].phase == asking {
			way.ask, way.token = yes, at.token
		}
	}
	s.visit(st)
	if st.repeats > 0 && c == 0 { // The clients are alike.
		st.repeats--
		way.copy = sent
		s.visit(st)
	}
}

// copied lets the copy of such a request arrive, whose answer nobody awaits.
func (s *search) copied(st state, n, c int) {
	if st.nodes[n].links[c].copy != sent {
		return
	}
	st.nodes[n].links[c].copy = none
	if st.nodes[n].owner == 0 {
		s.grant(&st, n, c)
	}
	s.visit(st)
}

// grant lets a node give its key to a client.
func (s *search) grant(st *state, n, c int) {
	at := &st.nodes[n]
	at.owner = int8(c + 1)
	if s.write != larger { // there it tells what it has, and the client chooses
		at.floor = max(at.floor+1, st.clients[c].proposal)
	}
	at.token = at.floor
}

// count lets an answer reach a client.
func (s *search) count(st state, n, c int) {
	if way := &st.nodes[n].links[c]; way.ask == yes && st.clients[c].phase == asking {
		way.ask = counted
		s.visit(st)
	}
}

// decide ends the first round of a client that has counted enough.
func (s *search) decide(st state, c int) {
	me := &st.clients[c]
	answers, same := 0, true
	for _, at := range st.nodes {
		if way := at.links[c]; way.ask == counted {
			same = same && (answers == 0 || way.token == me.token)
			me.token = max(me.token, way.token)
			answers++
		}
	}
	if me.phase != asking || answers < quorum {
		return
	}
	if s.write == larger {
		me.token++
	}
	me.phase = writing
	complete := s.write == nothing || s.write == unlessOne && same
	for n := range nodes {
		way := &st.nodes[n].links[c]
		if !complete && (way.ask == counted || !s.counted) {
			way.write = sent
		}
		if way.ask != sent {
			way.ask, way.token = none, 0 // It matters no more.
		}
	}
	if complete {
		s.finish(st, c)
		return
	}
	s.visit(st)
}

// written lets a request of the second round arrive.
func (s *search) written(st state, n, c int) {
	me, at := &st.clients[c], &st.nodes[n]
	if at.links[c].write != sent {
		return
	}
	at.links[c].write = none
	mine := at.owner == int8(c+1)
	if mine || !s.owned {
		at.floor = max(at.floor, me.token)
		if mine {
			at.token = max(at.token, me.token)
		}
		if me.phase == writing && (!s.exact || at.token == me.token) {
			at.links[c].write = yes
		}
	}
	s.visit(st)
}

// complete ends the second round of a client if enough nodes said yes.
func (s *search) complete(st state, c int) {
	acks := 0
	for _, at := range st.nodes {
		if at.links[c].write == yes {
			acks++
		}
	}
	if st.clients[c].phase == writing && acks >= quorum {
		s.finish(st, c)
	}
}

// finish completes a grant and judges its token.
func (s *search) finish(st state, c int) {
	me := &st.clients[c]
	me.phase = done
	for n := range nodes {
		if way := &st.nodes[n].links[c]; way.write == yes {
			way.write = none
		}
	}
	s.violated = s.violated || me.token <= me.after
	for i, other := range st.clients {
		if i != c && other.phase == done && other.token == me.token {
			s.violated = true
		}
	}
	me.after = 0
	if !slices.ContainsFunc(st.nodes[:], func(at node) bool { return at.links[c].ask == sent || at.links[c].copy == sent }) {
		me.proposal = 0
	}
	s.visit(st)
}

func TestModel(t *testing.T) {
	m := variant{propose: true, write: unlessOne, owned: true, counted: true}
	with := func(change func(*variant)) variant {
		v := m
		change(&v)
		return v
	}
	for _, test := range []struct {
		name  string
		want  bool
		rules variant
	}{ // Runs with holders have the most states.
		{"A: the largest of the nodes' own counters", false, variant{}},
		{"B: written back to any majority", false, variant{write: larger}},
		{"C: which takes it only while it holds the claim", false, variant{write: larger, owned: true}},
		{"D: and of which all were counted before", true, variant{write: larger, owned: true, counted: true}},
		{"E: D and a node that forgets", false, variant{write: larger, owned: true, counted: true, forgets: 1}},
		{"M: the client proposes, and writes only if answers differ", true, m},
		{"N: M written back to any majority", false, with(func(v *variant) { v.counted = false })},
		{"M and a node that forgets", false, with(func(v *variant) { v.forgets = 1 })},
		{"M and a request that is delivered twice", false, with(func(v *variant) { v.repeats = 1 })},
		{"M with a look at the token that was written", true, with(func(v *variant) { v.repeats, v.exact = 1, true })},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.want && testing.Short() {
				t.Skip("takes up to 40 s: make prove")
			}
			t.Parallel()
			got, states := test.rules.holds()
			t.Logf("%d states", states)
			if got != test.want {
				t.Errorf("holds: %v after %d states, want %v", got, states, test.want)
			}
		})
	}
}
