package redlock

import (
	"context"
	"errors"
	"fmt"
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
	request  *request  // the request under way
	late     time.Time // until then an Acquire without an answer may arrive
	won      uint64    // the token of the held claim, if the node is of the claim's majority
	until    time.Time // until when won is kept, at least
	releases int       // releases under way and leftovers
}

// A request is an Acquire under way at a node. A claim has one request at a time, and all
// calls for the claim wait for the request.
type request struct {
	done      chan struct{}
	sent      time.Time // zero if the Acquire was not sent
	grant     driver.Grant
	err       error
	least     uint64 // the smallest token with which the grant counts
	won       uint64 // record.won
	forgetful error  // the grant does not count, since the node may have forgotten claims or tokens
	released  bool   // a release was under way at the same time, and may have ended the grant
}

var errReleased = errors.New("has a release of this claim under way")

// minSweep is how many records a node has before old ones are deleted.
const minSweep = 256

// recordLocked returns the record of an id.
func (n *node) recordLocked(id string) *record {
	r := n.records[id]
	if r != nil {
		return r
	}
	if len(n.records) >= max(n.sweepAt, minSweep) {
		for id := range n.records {
			n.tidyLocked(id)
		}
		n.sweepAt = 2 * len(n.records)
	}
	r = &record{}
	n.records[id] = r
	return r
}

// tidyLocked deletes a record that is no longer needed.
func (n *node) tidyLocked(id string) {
	r := n.records[id]
	if now := time.Now(); r != nil && r.request == nil && r.releases == 0 && now.After(r.late) && now.After(r.until) {
		delete(n.records, id)
	}
}

// request returns the request of a claim that is under way. If there is none, request returns
// a new one, and the caller makes the call. Call request before the goroutine of the call
// begins, so that each release knows of the request.
func (n *node) request(id string) (q *request, own bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.recordLocked(id)
	if r.request != nil {
		return r.request, false
	}
	r.request = &request{done: make(chan struct{}), released: r.releases > 0}
	return r.request, true
}

// acquire makes the call of a request. After an error, the node may have granted the claim,
// except after driver.ErrInvalid.
func (n *node) acquire(ctx context.Context, a driver.Ask, q *request) {
	q.err = n.call(ctx, func(inner driver.Store) (err error) {
		q.sent = time.Now()
		n.asked(q.sent)
		if q.grant, err = inner.Acquire(ctx, a); err != nil {
			return err
		}
		switch {
		case q.grant.OK:
			if q.forgetful = n.checkAge(ctx, inner); q.forgetful == nil {
				q.least, q.forgetful = n.least(inner, a.Claim)
			}
		case n.unseen():
			_ = n.checkAge(ctx, inner) // so that a refusal can say that nodes do not count
		}
		return nil
	})
	n.complete(a.Claim, q)
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

// complete ends the request of a claim.
func (n *node) complete(c driver.Claim, q *request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.records[c.ID]
	r.request, q.won = nil, r.won
	if q.won == q.grant.Fence {
		q.least = 0 // A majority gave this token, which was large enough.
	}
	if q.err != nil && !q.sent.IsZero() && !errors.Is(q.err, driver.ErrInvalid) {
		r.late = time.Now().Add(lateness)
	}
	if q.err == nil && q.grant.OK && q.released {
		q.err = errReleased
	}
	if q.err == nil && q.grant.OK {
		r.until = q.sent.Add(c.TTL)
	}
	n.tidyLocked(c.ID)
	close(q.done)
}

// mayArrive reports whether an Acquire of the claim may be on its way, though no caller waits
// for the Acquire any more.
func (n *node) mayArrive(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.records[id]
	return r != nil && (r.request != nil || time.Now().Before(r.late))
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
	if err != nil || !n.mayArrive(a.ID) {
		return err
	}
	a.Fence = token
	q, ok := n.again(a, over)
	switch {
	case !ok:
		return errReleased
	case q.err == nil && (!q.grant.OK || q.grant.Fence != token):
		return fmt.Errorf("has given the claim another token since, %d", q.grant.Fence)
	}
	return q.err
}

// again makes a further Acquire in the course of a bid. A bid that is over must not ask: the
// claim may have been released.
func (n *node) again(a driver.Ask, over *atomic.Bool) (q *request, ok bool) {
	q, own := n.request(a.ID)
	switch {
	case !own:
		<-q.done
	case over.Load():
		q.err = errReleased // A later bid that waits for this request must not count it.
		n.complete(a.Claim, q)
		return nil, false
	default:
		ctx, end := n.redlock.limit(nodeLimit, 1)
		defer end()
		n.acquire(ctx, a, q)
	}
	return q, true
}

// release ends claims at the node. Call announce for the claims first. If an Acquire of a
// claim may be on its way, the node keeps the claim out.
func (n *node) release(ctx context.Context, rs []driver.Release) ([]error, error) {
	ctx, end := n.completed(ctx, rs)
	defer end()
	batch := releases(rs)
	n.mu.Lock()
	for i, r := range rs {
		rec := n.records[r.ID]
		batch[i].Late = r.Late || rec.request != nil || time.Now().Before(rec.late)
	}
	n.mu.Unlock()
	return n.send(ctx, batch)
}

// requeue ends claims that the client will request again. A late Acquire does no harm then,
// and keeping the late Acquire out would keep the claim out, too.
func (n *node) requeue(ctx context.Context, rs []driver.Release) ([]error, error) {
	ctx, end := n.completed(ctx, rs)
	defer end()
	return n.send(ctx, releases(rs))
}

func releases(rs []driver.Release) []release {
	batch := make([]release, len(rs))
	for i, r := range rs {
		batch[i] = release{r, time.Now().Add(r.TTL + time.Second)}
	}
	return batch
}

// completed waits for the requests of the claims, so that no release overtakes an Acquire:
// the node would have to keep the claim out. It returns the context of the release. After a
// wait, the context has its full time.
func (n *node) completed(ctx context.Context, rs []driver.Release) (release context.Context, end func()) {
	waited := false
	for _, r := range rs {
		n.mu.Lock()
		q := n.records[r.ID].request
		n.mu.Unlock()
		if q != nil {
			<-q.done
			waited = true
		}
	}
	if waited {
		return n.redlock.limit(nodeLimit, 1)
	}
	return ctx, func() {}
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
		n.announce(held)
		_, err = n.release(ctx, held)
	}
	return err
}

// announce notes releases that are about to begin. Call announce before the goroutine of
// the call begins, so that each Acquire knows of the release.
func (n *node) announce(rs []driver.Release) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range rs {
		rec := n.recordLocked(r.ID)
		rec.releases++
		if rec.request != nil {
			rec.request.released = true
		}
	}
}

// releasedLocked ends a release.
func (n *node) releasedLocked(r driver.Release) {
	rec := n.records[r.ID]
	rec.releases--
	if rec.releases == 0 && r.Late {
		rec.late = time.Time{} // The node refuses a late Acquire.
	}
	if rec.request == nil && !time.Now().Before(rec.late) {
		rec.until = time.Time{}
	}
	n.tidyLocked(r.ID)
}

// first is the answer of a call with one claim.
func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// ended reports whether a claim has certainly ended.
func ended(err error) bool { return err == nil || errors.Is(err, driver.ErrLost) }

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
