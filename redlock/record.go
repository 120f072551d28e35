package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// lateness is how long an Acquire without an answer is believed to be on its way: as long
// as a node refuses an Acquire that comes after the Release.
const lateness = 10 * time.Second

// A record is what the client has to know of a claim at one node: which calls have no
// answer yet, and the token of a held claim. A refused try has a record for the time of the
// call only.
type record struct {
	flight *flight   // an Acquire that goes on
	doubt  time.Time // until then an Acquire without an answer may arrive
	won    uint64    // the token of the held claim, if the node is of the claim's majority
	until  time.Time // until when won is kept, at least
	ending int       // releases that go on, or are owed
}

// A flight is an Acquire at a node. A claim has one flight at a time, and all calls for the
// claim wait for the flight.
type flight struct {
	done  chan struct{}
	sent  time.Time // zero if the Acquire was not sent
	grant driver.Grant
	err   error
	least uint64 // the smallest token with which the grant counts
	won   uint64 // record.won
	young error  // the grant does not count, since the node may have forgotten claims or tokens
	spoil bool   // a release went on beside the flight, and may have ended a grant since
}

var errEnding = errors.New("may yet hear of a release of this claim")

// crowd is how many records a node has before old ones are deleted.
const crowd = 256

// record returns the record of an id. Call record with mu held.
func (n *node) record(id string) *record {
	r := n.records[id]
	if r != nil {
		return r
	}
	if len(n.records) >= max(n.crowd, crowd) {
		for id := range n.records {
			n.tidy(id)
		}
		n.crowd = 2 * len(n.records)
	}
	r = &record{}
	n.records[id] = r
	return r
}

// tidy deletes a record that is no longer needed. Call tidy with mu held.
func (n *node) tidy(id string) {
	r := n.records[id]
	if now := time.Now(); r != nil && r.flight == nil && r.ending == 0 && now.After(r.doubt) && now.After(r.until) {
		delete(n.records, id)
	}
}

// board returns the flight of a claim. The caller is its pilot if the claim had none. Call
// board before the goroutine of the call begins, so that each release knows of the flight.
func (n *node) board(id string) (f *flight, pilot bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.record(id)
	if r.flight != nil {
		return r.flight, false
	}
	r.flight = &flight{done: make(chan struct{}), spoil: r.ending > 0}
	return r.flight, true
}

// fly makes the call of a flight. After an error, the node may have granted the claim,
// except after driver.ErrInvalid.
func (n *node) fly(ctx context.Context, a driver.Ask, f *flight) {
	f.err = n.call(ctx, func(inner driver.Store) (err error) {
		f.sent = time.Now()
		n.meets(f.sent)
		if f.grant, err = inner.Acquire(ctx, a); err != nil {
			return err
		}
		switch {
		case f.grant.OK:
			if f.young = n.serves(ctx, inner); f.young == nil {
				f.least, f.young = n.least(inner, a.Claim)
			}
		case n.unseen():
			_ = n.serves(ctx, inner) // so that a refusal can say that nodes do not count
		}
		return nil
	})
	n.land(a.Claim, f)
}

// won records that a claim is held with the token, and that the node is of the claim's
// majority.
func (n *node) won(id string, token uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.records[id]; r != nil {
		r.won = token
	}
}

// land ends the flight of a claim.
func (n *node) land(c driver.Claim, f *flight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.records[c.ID]
	r.flight, f.won = nil, r.won
	if f.won == f.grant.Fence {
		f.least = 0 // A majority gave this token, which was large enough.
	}
	if f.err != nil && !f.sent.IsZero() && !errors.Is(f.err, driver.ErrInvalid) {
		r.doubt = time.Now().Add(lateness)
	}
	if f.err == nil && f.grant.OK && f.spoil {
		f.err = errEnding
	}
	if f.err == nil && f.grant.OK {
		r.until = f.sent.Add(c.TTL)
	}
	n.tidy(c.ID)
	close(f.done)
}

// doubtful reports whether an Acquire of the claim may be on its way, though no caller waits
// for the Acquire any more.
func (n *node) doubtful(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.records[id]
	return r != nil && (r.flight != nil || time.Now().Before(r.doubt))
}

// raise sets the claim's token at the node, as if the node had granted the token. The node
// also says yes if the claim's token is larger already. A larger token is possible only if a
// late Acquire was granted once more, or came after the raise of another reader. A further
// Acquire finds out, see the model.
func (n *node) raise(ctx context.Context, a driver.Ask, token uint64, over *atomic.Bool) error {
	errs, err := n.renew(ctx, []driver.Renewal{{Claim: a.Claim, Fence: token}})
	if err == nil {
		err = first(errs)
	}
	if err != nil || !n.doubtful(a.ID) {
		return err
	}
	a.Fence = token
	f, ok := n.again(a, over)
	switch {
	case !ok:
		return errEnding
	case f.err == nil && (!f.grant.OK || f.grant.Fence != token):
		return fmt.Errorf("has given the claim another token since, %d", f.grant.Fence)
	}
	return f.err
}

// again makes a further Acquire in the course of a bid. A bid that is over must not ask: the
// claim may have been released.
func (n *node) again(a driver.Ask, over *atomic.Bool) (f *flight, ok bool) {
	f, pilot := n.board(a.ID)
	switch {
	case !pilot:
		<-f.done
	case over.Load():
		n.land(a.Claim, f)
		return nil, false
	default:
		ctx, end := n.redlock.limit(nodeLimit, 1)
		defer end()
		n.fly(ctx, a, f)
	}
	return f, true
}

// release ends claims at the node. Call part for the claims first. If an Acquire of a claim
// may be on its way, the node keeps the claim out. A release without an answer is owed.
func (n *node) release(ctx context.Context, rs []driver.Release) ([]error, error) {
	ctx, end := n.landed(ctx, rs)
	defer end()
	return n.finish(ctx, n.late(rs))
}

// cede ends claims that the client will ask for again. A late Acquire does no harm then, and
// keeping the late Acquire out would keep the claim out, too.
func (n *node) cede(ctx context.Context, rs []driver.Release) ([]error, error) {
	ctx, end := n.landed(ctx, rs)
	defer end()
	return n.finish(ctx, rs)
}

func (n *node) finish(ctx context.Context, rs []driver.Release) ([]error, error) {
	errs, err := n.send(ctx, rs)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, r := range rs {
		if err == nil && (errs == nil || settled(errs[i])) {
			n.settle(r)
		} else {
			n.owe(debt{r, time.Now().Add(r.TTL + time.Second)})
		}
	}
	return errs, err
}

// landed waits for the flights of the claims, so that no release overtakes an Acquire: the
// node would have to keep the claim out. It returns the context of the release. After a
// wait, the context has its full time.
func (n *node) landed(ctx context.Context, rs []driver.Release) (release context.Context, end func()) {
	waited := false
	for _, r := range rs {
		n.mu.Lock()
		f := n.records[r.ID].flight
		n.mu.Unlock()
		if f != nil {
			<-f.done
			waited = true
		}
	}
	if waited {
		return n.redlock.limit(nodeLimit, 1)
	}
	return ctx, func() {}
}

// late returns the releases as sent to the node: with Late where an Acquire may be on its
// way.
func (n *node) late(rs []driver.Release) []driver.Release {
	n.mu.Lock()
	defer n.mu.Unlock()
	sent := rs
	for i, r := range rs {
		rec := n.records[r.ID]
		if r.Late || rec.flight == nil && !time.Now().Before(rec.doubt) {
			continue
		}
		if &sent[0] == &rs[0] {
			sent = slices.Clone(rs)
		}
		sent[i].Late = true
	}
	return sent
}

// send makes the call of a release.
func (n *node) send(ctx context.Context, rs []driver.Release) (errs []error, err error) {
	err = n.call(ctx, func(inner driver.Store) error {
		errs = inner.Release(ctx, rs)
		return unanswered(len(rs), errs)
	})
	return errs, err
}

// renew makes the call of a renewal.
func (n *node) renew(ctx context.Context, rs []driver.Renewal) (errs []error, err error) {
	err = n.call(ctx, func(inner driver.Store) error {
		errs = inner.Renew(ctx, rs)
		return unanswered(len(rs), errs)
	})
	return errs, err
}

// abandon releases the claims that the node holds, not the claims that are queued there.
func (n *node) abandon(ctx context.Context, rs []driver.Renewal) error {
	errs, err := n.renew(ctx, rs)
	var held []driver.Release
	for i, r := range rs {
		if err == nil && (errs == nil || errs[i] == nil) {
			held = append(held, driver.Release{Claim: r.Claim})
		}
	}
	if len(held) > 0 {
		n.part(held)
		_, err = n.release(ctx, held)
	}
	return err
}

// part notes releases that are about to begin. Call part before the goroutine of
// the call begins, so that each Acquire knows of the release.
func (n *node) part(rs []driver.Release) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range rs {
		rec := n.record(r.ID)
		rec.ending++
		if rec.flight != nil {
			rec.flight.spoil = true
		}
	}
}

// settle ends a release. Call settle with mu held.
func (n *node) settle(r driver.Release) {
	rec := n.records[r.ID]
	rec.ending--
	if rec.ending == 0 && r.Late {
		rec.doubt = time.Time{} // The node refuses a late Acquire.
	}
	if rec.flight == nil && !time.Now().Before(rec.doubt) {
		rec.until = time.Time{}
	}
	n.tidy(r.ID)
}

// first is the answer of a call with one claim.
func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// settled reports whether a claim has certainly ended.
func settled(err error) bool { return err == nil || errors.Is(err, driver.ErrLost) }

// unanswered says why a node has answered for none of the claims. It returns nil if the node
// has answered for a claim.
func unanswered(claims int, errs []error) error {
	if errs == nil {
		return nil
	}
	if len(errs) != claims {
		return fmt.Errorf("gave %d answers for %d claims", len(errs), claims)
	}
	for _, err := range errs {
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrInvalid) {
			return nil
		}
	}
	return first(errs)
}
