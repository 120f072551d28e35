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

// lateness is for how long an Acquire without an answer is believed to be on
// its way. It is as long as a node refuses one that comes after its Release.
const lateness = 10 * time.Second

// A record is what has to be known of an id at one node beside what the node
// knows: which calls have not been answered. Most ids have one for the time of
// a call only.
type record struct {
	flight *flight   // an Acquire that goes on
	doubt  time.Time // until then an Acquire that had no answer may arrive
	ending int       // releases that go on, or are owed
}

// A flight is an Acquire at a node. There is one at a time for an id, which
// all who ask for it wait for.
type flight struct {
	done  chan struct{}
	sent  time.Time // zero if it was not
	grant driver.Grant
	err   error
	young error // the grant does not count, because the node may have forgotten others
	spoil bool  // a release went on beside it: if it is granted, that may have ended since
}

var errEnding = errors.New("may yet hear of a release of this claim")

// crowd is how many records there are before it is looked for old ones.
const crowd = 256

// record returns the record of an id. Call it with mu held.
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

// tidy forgets a record that says nothing. Call it with mu held.
func (n *node) tidy(id string) {
	r := n.records[id]
	if r != nil && r.flight == nil && r.ending == 0 && time.Now().After(r.doubt) {
		delete(n.records, id)
	}
}

// board takes a place on the flight of an id, of which it is the pilot if there
// was none. It is called before the goroutine of the call begins, so that no
// release slips in between that does not know of it.
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

// fly makes the call of a flight. Its errors leave open what the node has done,
// but for driver.ErrInvalid.
func (n *node) fly(ctx context.Context, c driver.Claim, f *flight) {
	f.err = n.call(ctx, func(inner driver.Store) (err error) {
		f.sent = time.Now()
		if f.grant, err = inner.Acquire(ctx, c); err == nil && f.grant.OK {
			f.young = n.serves(ctx, inner)
		}
		return err
	})
	n.land(c.ID, f)
}

// land ends the flight of an id.
func (n *node) land(id string, f *flight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.records[id]
	r.flight = nil
	if f.err != nil && !f.sent.IsZero() && !errors.Is(f.err, driver.ErrInvalid) {
		r.doubt = time.Now().Add(lateness)
	}
	if f.err == nil && f.grant.OK && f.spoil {
		f.err = errEnding
	}
	n.tidy(id)
	close(f.done)
}

// doubtful reports whether an Acquire of the id may be on its way that nobody
// waits for any more.
func (n *node) doubtful(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.records[id]
	return r != nil && (r.flight != nil || time.Now().Before(r.doubt))
}

// raise lets the claim's token at the node be this one, just as if the node had
// granted it. A node says yes to a smaller one too; that it has granted the
// claim once more, with a larger token, is possible only if an Acquire came
// late, and found out by asking. See the model. A bid that is over must not ask:
// the claim may have been released.
func (n *node) raise(ctx context.Context, c driver.Claim, token uint64, over *atomic.Bool) error {
	c.Fence = token
	errs, err := n.renew(ctx, []driver.Claim{c})
	if err == nil {
		err = first(errs)
	}
	if err != nil || !n.doubtful(c.ID) {
		return err
	}
	f, pilot := n.board(c.ID)
	switch {
	case !pilot:
		<-f.done
	case over.Load():
		n.land(c.ID, f)
		return errEnding
	default:
		ctx, end := n.redlock.limit(nodeLimit, 1)
		defer end()
		n.fly(ctx, c, f)
	}
	if f.err == nil && (!f.grant.OK || f.grant.Fence != token) {
		return fmt.Errorf("has granted the claim once more, with token %d", f.grant.Fence)
	}
	return f.err
}

// release ends claims at the node for which part was called, and keeps those out of
// which an Acquire may be on its way. Those that it does not answer for are owed.
func (n *node) release(ctx context.Context, cs []driver.Claim) ([]error, error) {
	ctx, end := n.landed(ctx, cs)
	defer end()
	return n.finish(ctx, n.late(cs))
}

// cede ends claims likewise that will be asked for again. An Acquire that is on its
// way does no harm then, and keeping it out would keep the claim out, too.
func (n *node) cede(ctx context.Context, cs []driver.Claim) ([]error, error) {
	ctx, end := n.landed(ctx, cs)
	defer end()
	return n.finish(ctx, cs)
}

func (n *node) finish(ctx context.Context, cs []driver.Claim) ([]error, error) {
	errs, err := n.send(ctx, cs)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, c := range cs {
		if err == nil && (errs == nil || settled(errs[i])) {
			n.settle(c)
		} else {
			n.owe(debt{c, time.Now().Add(c.TTL + time.Second)})
		}
	}
	return errs, err
}

// landed waits for the flights of the claims, so that their release does not
// overtake them: a node would have to keep the claims out that come too late. It
// returns the context of the release, which has its full time after a wait.
func (n *node) landed(ctx context.Context, cs []driver.Claim) (release context.Context, end func()) {
	waited := false
	for _, c := range cs {
		n.mu.Lock()
		f := n.records[c.ID].flight
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

// late returns the claims of a release as the node should be told: with Late
// where an Acquire may be on its way.
func (n *node) late(cs []driver.Claim) []driver.Claim {
	n.mu.Lock()
	defer n.mu.Unlock()
	told := cs
	for i, c := range cs {
		r := n.records[c.ID]
		if c.Late || r.flight == nil && !time.Now().Before(r.doubt) {
			continue
		}
		if &told[0] == &cs[0] {
			told = slices.Clone(cs)
		}
		told[i].Late = true
	}
	return told
}

// send makes the call of a release.
func (n *node) send(ctx context.Context, cs []driver.Claim) (errs []error, err error) {
	err = n.call(ctx, func(inner driver.Store) error {
		errs = inner.Release(ctx, cs)
		return unanswered(len(cs), errs)
	})
	return errs, err
}

// renew makes the call of a renewal.
func (n *node) renew(ctx context.Context, cs []driver.Claim) (errs []error, err error) {
	err = n.call(ctx, func(inner driver.Store) error {
		errs = inner.Renew(ctx, cs)
		return unanswered(len(cs), errs)
	})
	return errs, err
}

// abandon releases those of the claims that the node holds, not those that
// stand in line there.
func (n *node) abandon(ctx context.Context, cs []driver.Claim) error {
	errs, err := n.renew(ctx, cs)
	var held []driver.Claim
	for i, c := range cs {
		if err == nil && (errs == nil || errs[i] == nil) {
			held = append(held, c)
		}
	}
	if len(held) > 0 {
		n.part(held)
		_, err = n.release(ctx, held)
	}
	return err
}

// part takes note of a release that is about to begin: before the goroutine of
// the call does, so that no Acquire slips in between that does not know of it.
func (n *node) part(cs []driver.Claim) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range cs {
		r := n.record(c.ID)
		r.ending++
		if r.flight != nil {
			r.flight.spoil = true
		}
	}
}

// settle ends a release of a claim. Call it with mu held.
func (n *node) settle(c driver.Claim) {
	r := n.records[c.ID]
	r.ending--
	if r.ending == 0 && c.Late {
		r.doubt = time.Time{} // The node refuses what is late.
	}
	n.tidy(c.ID)
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

// unanswered is why a node has said nothing about any of so many claims, nil if
// it has.
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
