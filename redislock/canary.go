package redislock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/canary"
)

// A proof remembers whether the server has shown that its claims exclude.
type proof struct {
	done     atomic.Bool
	tried    atomic.Bool           // without a result
	evidence atomic.Pointer[error] // against the server, until a proof
	turn     chan struct{}         // held by the call that proves
	route    string                // the addresses of a URL; "" with the caller's client

	// Guarded by turn.
	again time.Time     // no further try before
	pause time.Duration // between the last try and again
}

const (
	canaryPause = time.Second      // after a try that has shown nothing, doubled each time
	canaryRest  = 10 * time.Minute // at most
	canaryTime  = 2 * time.Second  // of a try, and at most half of the caller's time: a second connection may hang

	canaryTTL  = time.Minute // a pause of this process for half as long is no evidence; verify allows such remains
	canaryKeys = 8           // of two servers behind a proxy, all keys reach one in 1 of 128 cases
	canaryAsks = 4           // of each connection, at the same time
)

// proved has the servers that this process has proved, as an origin each. A restarted server
// has a new id, and so is proved again.
var proved sync.Map

// An origin is a run of Redis or Valkey behind the addresses of a URL. Other addresses may lead to
// this server and others, so the id alone does not count.
type origin struct{ route, run string }

// A trial is a set of claims of two connections. Its keys are random, as processes prove at the
// same time.
type trial struct {
	store         *Store
	first, second doer
	keys          [canaryKeys]string
}

// prove returns an error that matches [driver.ErrInvalid] if two connections acquire the same
// lock. A success is remembered: for a Store, and with a URL for all Stores of the process. If a
// failover may be the reason, see package canary, the error does not match, and the next call
// proves again. If a canary shows nothing, as without a second connection, prove returns nil and
// tries again later, after growing pauses. After evidence, only a proof lets calls go on.
func (s *Store) prove(ctx context.Context) error {
	if s.proof.done.Load() {
		return nil
	}
	limited, cancel := canary.Limit(ctx, canaryTime)
	defer cancel()
	if !s.proof.enter(limited) {
		return cmp.Or(ctx.Err(), s.proof.suspicion())
	}
	defer func() { <-s.proof.turn }()
	if s.proof.done.Load() || time.Now().Before(s.proof.again) {
		return nil
	}
	err := s.try(limited)
	lie, doubt := (*canary.Lie)(nil), (*canary.Doubt)(nil)
	switch {
	case err == nil:
		s.proof.done.Store(true)
		return nil
	case errors.As(err, &lie):
		return s.proof.suspect(&canary.Lie{What: s.engine(ctx) + " does not exclude: " + lie.What})
	case errors.As(err, &doubt): // without its cause, which may be the end of limited
		return cmp.Or(ctx.Err(), s.proof.suspect(errors.New(doubt.Error())))
	case s.proof.suspicion() != nil:
		return cmp.Or(ctx.Err(), s.proof.suspicion())
	}
	s.proof.pause = min(max(2*s.proof.pause, canaryPause), canaryRest)
	s.proof.again = time.Now().Add(s.proof.pause)
	s.proof.tried.Store(true)
	return ctx.Err()
}

// suspect remembers evidence against the server, and returns the evidence. Other calls then wait
// for the proof.
func (p *proof) suspect(evidence error) error {
	p.evidence.Store(&evidence)
	p.tried.Store(false)
	return evidence
}

// suspicion returns the last evidence, or nil.
func (p *proof) suspicion() error {
	if evidence := p.evidence.Load(); evidence != nil {
		return *evidence
	}
	return nil
}

// enter takes the turn. After a try without a result, no call waits for the try of another call.
func (p *proof) enter(ctx context.Context) bool {
	if p.tried.Load() {
		select {
		case p.turn <- struct{}{}:
			return true
		default:
			return false
		}
	}
	select {
	case p.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// try compares connections. A server that this process has proved needs no canary.
func (s *Store) try(ctx context.Context) error {
	said := s.look(ctx, s.conn)
	if _, ok := proved.Load(s.origin(said)); ok {
		return nil
	}
	key, looked := canaryKey(), true
	err := canary.Prove[doer](s.conn, func() (doer, func(), error) {
		single, err := s.conn.Apart(ctx, s.names.held(key))
		if err != nil {
			return nil, nil, err
		}
		return single, single.Close, nil
	}, func(first, second doer) error {
		if !looked {
			said = s.look(ctx, first)
		}
		looked = false
		return s.compare(ctx, said, key, first, second)
	})
	if from := s.origin(said); err == nil && from != (origin{}) {
		proved.Store(from, true)
	}
	return err
}

// origin is zero if the server may not be remembered.
func (s *Store) origin(said said) origin {
	if !said.genuine || said.role != "master" || said.run == "" || s.proof.route == "" {
		return origin{}
	}
	return origin{s.proof.route, said.run}
}

// compare lets two connections try to acquire the same locks.
func (s *Store) compare(ctx context.Context, said said, near string, first, second doer) error {
	t := &trial{store: s, first: first, second: second}
	for i := range t.keys {
		t.keys[i] = canaryKey()
	}
	for s.names.cluster && bucket(t.keys[0]) != bucket(near) { // the connection is to a node of a Cluster
		t.keys[0] = canaryKey()
	}
	began := time.Now()
	err := t.run(ctx, said)
	if err != nil && time.Since(began) > canaryTTL/2 {
		return errors.New("the claims may have expired")
	}
	return err
}

// run lets the claims of one connection stand in the way of the other's. Unless the server is
// known to run scripts one after the other, both then ask for a free lock at the same time.
func (t *trial) run(ctx context.Context, said said) error {
	held := make([]driver.Ask, canaryKeys)
	for i, key := range t.keys {
		held[i] = request(key)
	}
	if t.store.acquires == nil { // no call for several keys
		held = held[:1]
	}
	defer func() { t.release(ctx, held...) }()
	tokens, err := t.acquire(ctx, t.first, held)
	switch {
	case err != nil:
		return err
	case len(tokens) < len(held):
		return errors.New("another process has acquired a random key")
	}
	if said.role == "slave" || said.role == "active-replica" { // the next copy of the primary's data removes the locks
		return &canary.Lie{What: "the server is a replica that accepts writes (role:" + said.role + "), so the primary grants the same locks. Name the primary, or set replica-read-only"}
	}
	switch both, err := t.acquire(ctx, t.second, []driver.Ask{request(t.keys[0])}); {
	case err != nil:
		return err
	case len(both) > 0:
		return &canary.Lie{What: "two connections asked for the same lock, and both were granted the lock. Either the server only looks like Redis, or the address leads to several servers: name one server, or the Cluster"}
	}
	if len(held) > 1 {
		if err := t.split(ctx, held); err != nil {
			return err
		}
	}
	if said.genuine {
		return nil
	}
	t.release(ctx, held[0])
	return t.rush(ctx, slices.Max(tokens))
}

// split shows a proxy that spreads keys over servers: the proxy sends a combined call to the
// server of another key, on which the lock is free.
func (t *trial) split(ctx context.Context, held []driver.Ask) error {
	group := make([]*pending, len(held))
	for i, key := range t.keys {
		a := request(key)
		group[i] = &pending{terms: termsOf(a), key: a.Key, id: a.ID}
	}
	keys, args := t.store.acquireMany(termsOf(held[0]), group)
	r := eval(ctx, t.second, acquireManyScript(), acquireManyScript().call(keys, args...))[0]
	if r.Err != nil {
		return without(r.Err)
	}
	for _, n := range ints(r.Value) {
		if n != 0 {
			return &canary.Lie{What: "a lock was granted a second time by a call for several keys: a proxy spreads keys over several servers. Name one server, or the Cluster without the proxy"}
		}
	}
	if list, ok := r.Value.([]any); !ok || len(ints(list)) != len(held) {
		return &canary.Lie{What: errReply.Error()}
	}
	return nil
}

// rush lets both connections ask for the free lock at the same time, several times each.
func (t *trial) rush(ctx context.Context, token uint64) error {
	var tokens [2][]uint64
	var errs [2]error
	var asks [2][]driver.Ask
	var asking sync.WaitGroup
	for i, conn := range []doer{t.first, t.second} {
		for range canaryAsks {
			asks[i] = append(asks[i], request(t.keys[0]))
		}
		asking.Go(func() { tokens[i], errs[i] = t.acquire(ctx, conn, asks[i]) })
	}
	asking.Wait()
	t.release(ctx, slices.Concat(asks[0], asks[1])...)
	switch granted := slices.Concat(tokens[0], tokens[1]); {
	case errors.Join(errs[0], errs[1]) != nil:
		return errors.Join(errs[0], errs[1])
	case len(granted) > 1:
		return &canary.Lie{What: fmt.Sprintf("of %d requests at the same time for one lock, %d were granted the lock: the server does not run scripts one after the other", 2*canaryAsks, len(granted))}
	case len(granted) == 1 && granted[0] <= token:
		return &canary.Lie{What: fmt.Sprintf("the fencing token %d follows %d: the server answers from old data", granted[0], token)}
	}
	return nil // no grant: a proxy may have sent the first request again
}

// acquire asks for claims once each and returns the tokens of the granted claims.
func (t *trial) acquire(ctx context.Context, conn doer, asks []driver.Ask) (tokens []uint64, err error) {
	calls := make([]Command, len(asks))
	for i, a := range asks {
		calls[i] = t.store.acquire(a, "")
	}
	for i, r := range eval(ctx, conn, acquireScript(), calls...) {
		g, err := granted(r, asks[i], t.store.names)
		switch {
		case errors.Is(err, errReply):
			return nil, &canary.Lie{What: err.Error()}
		case err != nil:
			return nil, without(err)
		case g.OK:
			tokens = append(tokens, g.Fence)
		}
	}
	return tokens, nil
}

// release ends claims. Without an answer the claims expire.
func (t *trial) release(ctx context.Context, asks ...driver.Ask) {
	calls := make([]Command, len(asks))
	for i, a := range asks {
		calls[i] = releaseScript().call(t.store.names.all(a.Key, a.ID), a.ID, "0")
	}
	eval(ctx, t.first, releaseScript(), calls...)
}

// said is what a server says of itself.
type said struct {
	genuine   bool   // Redis or Valkey
	run, role string // "" if unknown
}

// look asks the server what it is.
func (s *Store) look(ctx context.Context, conn doer) said {
	if s.names.cluster { // only primaries of a Cluster accept writes
		return said{genuine: true}
	}
	replies := conn.Do(ctx, infoOf("server"), infoOf("replication"))
	server, err := readInfo(replies[0])
	facts, err2 := readInfo(replies[1])
	if err != nil || err2 != nil {
		return said{} // no right to INFO, or no such command
	}
	product := product(server)
	return said{
		genuine: server["redis_version"] != "" && server["run_id"] != "" && (product == "redis" || product == "valkey"),
		run:     server["run_id"],
		role:    facts["role"],
	}
}

func canaryKey() string { return "holdfast/canary/" + rand.Text() }

func request(key string) driver.Ask {
	return driver.Ask{
		Claim: driver.Claim{Key: key, ID: rand.Text(), Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: canaryTTL},
		Span:  1,
	}
}

// without returns a lie if the error says that the server has no scripts.
func without(err error) error {
	if said := strings.ToLower(err.Error()); strings.Contains(said, "unknown command") && strings.Contains(said, "eval") {
		return &canary.Lie{What: "the server has no Lua scripts: " + err.Error()}
	}
	return err
}

// engine names the server, if the server tells its name in time.
func (s *Store) engine(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, canaryTime)
	defer cancel()
	facts, err := info(ctx, s.conn, "server")
	if err != nil || facts == nil {
		return "the server"
	}
	name := product(facts)
	return "the server, " + name + " " + facts[name+"_version"] + ","
}

// product returns the name before a version in INFO. Servers that imitate Redis have their own
// version beside the version of Redis.
func product(facts map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		product, ok := strings.CutSuffix(name, "_version")
		if ok && product != "redis" && product != "gcc" {
			return product
		}
	}
	return "redis"
}
