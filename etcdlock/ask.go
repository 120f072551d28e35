package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// An ask is an Acquire, for one caller after the other.
type ask struct {
	driver.Ask
	*Store
	began   time.Time
	claim   *claim        // in the table
	entry   entry         // of the claim, to be created
	lease   *lease        // for a holding claim
	waiting *lease        // for a waiting claim, whose client may die; nil unless the claim waits
	kept    time.Duration // how long the place under that lease lasts after a request

	wanted   time.Time // when the last caller began; guarded by Store.mu
	settled  bool      // no further caller may wait for the answer; guarded by Store.mu
	ended    bool      // the Acquire was told to end; guarded by Store.mu
	released bool      // the claim was released; guarded by Store.mu
	cancel   context.CancelFunc
	done     chan struct{} // closed when the answer, grant and err, is there
	grant    driver.Grant
	err      error
}

// recheck lets the renewers check the leases of the request, after etcd has reported
// that a lease is gone. It reports whether the check was done.
func (a *ask) recheck(ctx context.Context) bool {
	for _, l := range slices.Compact([]*lease{a.lease, a.waiting}) {
		if l != nil && !a.awaitRound(ctx, l) {
			return false
		}
	}
	return true
}

func (a *ask) try(ctx context.Context) (g driver.Grant, err error) {
	if g, waits := a.stillWaits(ctx); waits {
		return g, nil
	}
	if a.lease, err = a.cover(ctx, a.TTL, a.began.Add(a.TTL)); err != nil {
		return g, err
	}
	a.mu.Lock()
	c, was := a.table[a.ID], asking
	switch {
	case a.ended:
		a.mu.Unlock()
		return g, errEnded
	case c == nil:
		c = a.enterLocked(a.Claim, a.lease)
	case c.over():
		a.mu.Unlock()
		return driver.Grant{Left: pause}, nil
	default:
		was = c.state
	}
	if was != held {
		c.Span = span(a.Ask)
	}
	a.standLocked(c, later(c.until, a.wanted.Add(a.stands())))
	a.claim, a.entry = c, c.entry
	a.mu.Unlock()

	if was == held {
		err := a.extend(ctx, driver.Renewal{Claim: a.Claim}, a.began, true)
		if errors.Is(err, driver.ErrLost) {
			return driver.Grant{Left: pause}, nil // until the claim is removed
		}
		return a.heldGrant(), err
	}
	v, mine, err := a.look(ctx, was)
	if err == nil && !mine {
		mine, err = a.join(ctx, &v)
	}
	if err == nil && mine {
		err = a.agree(ctx, &v)
	}
	g, moves, err := a.settle(v, mine, err)
	if g.OK && v.queue[v.index(a.ID)].Left {
		return a.leftGrant(ctx, v.queue[v.index(a.ID)], g)
	}
	if !moves {
		return g, err
	}
	if err := a.extend(ctx, driver.Renewal{Claim: a.Claim}, a.began, true); err != nil {
		return driver.Grant{}, unsure(err)
	}
	return a.heldGrant(), nil
}

// leftGrant returns the grant of a claim that was left, for its remaining time.
func (a *ask) leftGrant(ctx context.Context, e entry, g driver.Grant) (driver.Grant, error) {
	left, err := a.left(ctx, queue{e})
	if err != nil {
		return driver.Grant{}, err
	}
	g.TTL = min(g.TTL, left[e.leaseID])
	if g.TTL <= 0 {
		return driver.Grant{Left: pause}, nil
	}
	return g, nil
}

// heldGrant returns the grant of a claim that has just been extended.
func (a *ask) heldGrant() driver.Grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.holdingLocked(a.ID)
	if c == nil {
		return driver.Grant{}
	}
	c.asked = a.wanted
	return c.granted(a.TTL)
}

// settle records the outcome in the table, and returns the answer. If moves is true,
// the claim holds now, but is not yet under the lease for holders.
func (a *ask) settle(v view, mine bool, err error) (g driver.Grant, moves bool, _ error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.settled = a.settled || !moves }()
	c := a.claim
	switch {
	case a.table[a.ID] != c:
		a.leaveToCleanerLocked(mine, err)
		return g, false, cmp.Or(err, errEnded)
	case err != nil:
		if c.state == asking {
			// A final refusal leaves no request on its way.
			if c.late = c.late || doubtful(err); !c.late {
				a.dropLocked(c)
			}
		}
		return g, false, err
	case c.over():
		return driver.Grant{Left: pause}, false, nil
	case !mine:
		if !c.late { // otherwise the cleaner handles a late request
			a.dropLocked(c)
		}
		return v.refusal(), false, nil
	}
	if err := countable(v.rev); err != nil {
		return driver.Grant{}, false, err
	}
	i := v.index(a.ID)
	c.asked = a.wanted
	holds := a.learnLocked(c, v, i)
	switch {
	case v.queue[i].Left:
		g = c.granted(a.TTL)
		a.dropLocked(c) // Nobody may renew the claim.
	case holds && c.lease == a.lease:
		g = c.granted(a.TTL)
		a.standLocked(c, later(c.until, a.began.Add(a.TTL)))
	case !holds:
		if a.waiting != nil && c.lease == a.waiting {
			c.kept = a.kept
		}
		g = c.refusal()
		if c.state == asking || c.ahead.fits(c.Weight, c.Limit) {
			g.Left, g.Kept = pause, 0 // The queue has changed since the read.
		}
		a.keepPlaceLocked(c)
		a.noteRefusalLocked(c)
	default:
		moves = true
	}
	return g, moves, nil
}

// keepPlaceLocked lets the claim keep its place, as long after the last request as is promised.
func (a *ask) keepPlaceLocked(c *claim) {
	a.standLocked(c, later(a.began.Add(c.kept), a.wanted.Add(a.Alive())))
}

// errEnded is the error of an Acquire that a release, the expiry of the claim, or an Acquire on other
// terms has ended.
var errEnded = errors.New("the claim was ended while it was asked for")

// doubtful reports whether a request may create the claim although the Acquire has failed.
func doubtful(err error) bool {
	return err != nil && !final(err) && !errors.Is(err, errEnded)
}

// leaveToCleanerLocked handles an Acquire whose claim is no longer in the table, but is in
// etcd or may be. Nobody else would renew or remove the claim.
func (a *ask) leaveToCleanerLocked(mine bool, err error) {
	unknown := a.claim.late || doubtful(err)
	c := a.table[a.ID]
	switch {
	case !mine && !unknown:
	case !mine && a.released: // The Release leaves no claim.
	case c != nil:
		c.late, c.elsewhere = true, true // The end of c handles this request, too.
	default:
		c = a.enterLocked(a.Claim, nil)
		c.state, c.late, c.elsewhere = waiting, unknown, true
		a.addLeftoverLocked(c)
	}
}

// learnLocked records what etcd says of a claim, and reports whether the claim holds.
func (s *Store) learnLocked(c *claim, v view, i int) (holds bool) {
	e := v.queue[i]
	if c.rev > e.rev || c.seen > v.rev {
		return c.state == held // The known state is newer.
	}
	if c.name != e.name { // Another client has created the claim.
		delete(s.named, c.name)
		s.named[e.name] = c
		c.elsewhere = true
	}
	if c.rev < e.rev {
		c.state = waiting
	}
	c.know(e)
	c.seen = v.rev
	if c.state == held {
		return true
	}
	c.setLeaseLocked(s.leaseOfLocked(e.leaseID))
	if s.goneSinceLocked(c.key, e.name, v.rev) {
		c.state, c.ahead = asking, nil
		return false
	}
	c.state = waiting
	c.more = max(v.claims-len(v.queue), 0)
	c.checked(s.now())
	c.ahead, c.joins = s.remainingLocked(c.key, v.rev, v.queue[:i]), v.queue[:i].reader() >= 0
	if i < v.held() || c.unblocked() {
		c.hold()
	}
	return c.state == held
}

// unblocked reports whether a waiting claim holds, by what is known of the claims ahead.
// If only some claims ahead are known, no departure tells: the claim reads the queue again.
// For a reader that queued behind other readers, the claims still ahead are not enough:
// all these readers must have the same token, and another client may have given it to
// them before they left.
func (c *claim) unblocked() bool {
	q := append(slices.Clone(c.ahead), c.entry)
	return c.more == 0 && q.held() == len(q) && (!c.shared() || !c.joins)
}

func (c *claim) hold() { c.state, c.ahead = held, nil }

// unsure returns the error of an Acquire whose claim was lost during the grant: a retry
// may succeed.
func unsure(err error) error {
	if errors.Is(err, driver.ErrLost) {
		return errors.New("the claim was gone before it could be granted")
	}
	return err
}
