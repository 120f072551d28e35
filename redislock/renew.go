package redislock

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	maxRenewals = 100 // claims that one script renews: a fraction of a millisecond of the server's time
	confirming  = 16  // renewals that wait for replicas at the same time
)

// A bundle is the renewals of one call of a script.
type bundle struct {
	keys, args []string
	claims     []int // indexes into the renewals of Renew
}

// Renew implements [driver.Store].
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	if err := s.usable(); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	renewals, raises := s.bundles(rs)
	errs := make([]error, len(rs))
	s.renew(ctx, rs, renewScript(), renewals, errs)
	s.renew(ctx, rs, raiseScript(), raises, errs)
	s.findBroken(ctx, rs, errs)
	return errs
}

// bundles puts renewals into as few calls as possible. In a cluster a call keeps to a
// single slot. A call that raises a token is for a single claim.
func (s *Store) bundles(rs []driver.Renewal) (renewals, raises []bundle) {
	cluster := s.conn.Cluster()
	open := make(map[string]int) // by bucket: the call with room for more claims
	for i, r := range rs {
		if r.Fence > 0 {
			raises = append(raises, bundle{
				keys:   []string{s.names.held(r.Key), s.names.floor(r.Key)},
				args:   []string{r.ID, micros(r.TTL), flag(r.Leave), strconv.FormatUint(r.Fence, 10)},
				claims: []int{i},
			})
			continue
		}
		group := ""
		if cluster {
			group = bucket(r.Key)
		}
		n, ok := open[group]
		if !ok || len(renewals[n].claims) == maxRenewals {
			n = len(renewals)
			open[group] = n
			renewals = append(renewals, bundle{})
		}
		b := &renewals[n]
		b.keys = append(b.keys, s.names.held(r.Key))
		b.args = append(b.args, r.ID, micros(r.TTL), flag(r.Leave))
		b.claims = append(b.claims, i)
	}
	return renewals, raises
}

// renew makes the calls of a script and stores the outcome of each renewal in errs.
func (s *Store) renew(ctx context.Context, rs []driver.Renewal, sc script, bundles []bundle, errs []error) {
	if len(bundles) == 0 {
		return
	}
	calls := make([]Command, len(bundles))
	for i, b := range bundles {
		calls[i] = sc.call(b.keys, b.args...)
	}
	for i, reply := range s.evalAll(ctx, sc, calls) {
		for n, claim := range bundles[i].claims {
			errs[claim] = renewed(reply, n, rs[claim], s.names)
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

// findBroken finds out which of the lost claims were broken.
func (s *Store) findBroken(ctx context.Context, rs []driver.Renewal, errs []error) {
	var gone []int
	var asks []Command
	for i, err := range errs {
		if err == driver.ErrLost {
			gone = append(gone, i)
			asks = append(asks, Command{Words: []string{"GET"}, Keys: []string{s.names.tomb(rs[i].Key, rs[i].ID)}})
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
