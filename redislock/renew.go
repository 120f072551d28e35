package redislock

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	batch      = 100 // claims that one script renews: a fraction of a millisecond of the server's time
	confirming = 16  // renewals that wait for replicas at the same time
)

// A renewal is a call of a script for at least one claim.
type renewal struct {
	script     script
	keys, args []string
	claims     []int // indexes into the claims to renew
}

func (r *renewal) call() Command { return r.script.call(r.keys, r.args...) }

// Renew implements [driver.Store].
func (s *Store) Renew(ctx context.Context, cs []driver.Claim) []error {
	if err := s.usable(); err != nil {
		return slices.Repeat([]error{err}, len(cs))
	}
	renewals, raises := s.renewals(cs)
	errs := make([]error, len(cs))
	s.renew(ctx, cs, renewScript, renewals, errs)
	s.renew(ctx, cs, raiseScript, raises, errs)
	s.tellBroken(ctx, cs, errs)
	return errs
}

// renewals puts claims into as few calls as possible. In a cluster a call keeps to a
// single slot. A call that raises a token is for a single claim.
func (s *Store) renewals(cs []driver.Claim) (renewals, raises []renewal) {
	cluster := s.conn.Cluster()
	open := make(map[string]int) // by bucket: the call with room for more claims
	for i, c := range cs {
		if c.Fence > 0 {
			raises = append(raises, renewal{
				script: raiseScript,
				keys:   []string{s.names.held(c.Key), s.names.floor(c.Key)},
				args:   []string{c.ID, micros(c.TTL), flag(c.Leave), strconv.FormatUint(c.Fence, 10)},
				claims: []int{i},
			})
			continue
		}
		group := ""
		if cluster {
			group = bucket(c.Key)
		}
		n, ok := open[group]
		if !ok || len(renewals[n].claims) == batch {
			n = len(renewals)
			open[group] = n
			renewals = append(renewals, renewal{script: renewScript})
		}
		r := &renewals[n]
		r.keys = append(r.keys, s.names.held(c.Key))
		r.args = append(r.args, c.ID, micros(c.TTL), flag(c.Leave))
		r.claims = append(r.claims, i)
	}
	return renewals, raises
}

// renew makes the calls and stores the outcome of each claim in errs.
func (s *Store) renew(ctx context.Context, cs []driver.Claim, sc script, renewals []renewal, errs []error) {
	if len(renewals) == 0 {
		return
	}
	calls := make([]Command, len(renewals))
	for i := range renewals {
		calls[i] = renewals[i].call()
	}
	for i, r := range s.evalAll(ctx, sc, calls) {
		for n, claim := range renewals[i].claims {
			errs[claim] = renewed(r, n, cs[claim], s.names)
		}
	}
}

// evalAll runs the calls of a script together. With Options.Wait, each call waits for the
// replicas on a connection of its own.
func (s *Store) evalAll(ctx context.Context, sc script, calls []Command) []Reply {
	if s.wait == 0 {
		return eval(ctx, s.conn, sc, calls...)
	}
	replies := make([]Reply, len(calls))
	places := make(chan struct{}, confirming)
	var wg sync.WaitGroup
	for i, call := range calls {
		places <- struct{}{}
		wg.Go(func() {
			replies[i] = s.eval(ctx, sc, call)
			<-places
		})
	}
	wg.Wait()
	return replies
}

// tellBroken finds out which of the lost claims were broken.
func (s *Store) tellBroken(ctx context.Context, cs []driver.Claim, errs []error) {
	var gone []int
	var asks []Command
	for i, err := range errs {
		if err == driver.ErrLost {
			gone = append(gone, i)
			asks = append(asks, Command{Words: []string{"GET"}, Keys: []string{s.names.tomb(cs[i].Key, cs[i].ID)}})
		}
	}
	if len(asks) == 0 {
		return
	}
	for n, r := range s.conn.Do(ctx, asks...) {
		if r.Value == "broken" {
			errs[gone[n]] = driver.ErrBroken
		}
	}
}
