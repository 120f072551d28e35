package redlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Renew implements [driver.Store]. The answer of a majority holds. A node that has lost a
// claim does not get the claim back.
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	invalid := make([]error, len(rs))
	kept := rs[:0:0]
	for i, r := range rs {
		if invalid[i] = s.lasting(r.Claim); invalid[i] == nil {
			kept = append(kept, r)
		}
	}
	errs := s.poll(ctx, nodeLimit, len(kept), func(ctx context.Context, n *node) ([]error, error) { return n.renew(ctx, kept) })
	s.abandon(kept, errs)
	if len(kept) == len(rs) {
		return errs
	}
	for i := range invalid {
		if invalid[i] == nil && errs != nil {
			invalid[i], errs = errs[0], errs[1:]
		}
	}
	return invalid
}

// Release implements [driver.Store]. The answer of a majority holds. Slower nodes get the
// release in the background, until they have answered or the TTL has passed. The next
// holder should find all nodes free, so that the failure of one node does no harm.
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	if err := ctx.Err(); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	rs = slices.Clone(rs) // Background calls read the copy.
	announce(s.nodes, rs)
	return s.poll(ctx, nodeLimit, len(rs), func(ctx context.Context, n *node) ([]error, error) { return n.release(ctx, rs) })
}

// announce notes that claims are about to be released on nodes.
func announce(nodes []*node, rs []driver.Release) {
	for _, n := range nodes {
		n.announce(rs)
	}
}

// abandon releases claims that a majority has lost. The nodes that still keep the claims
// would block the next holder.
func (s *Store) abandon(rs []driver.Renewal, errs []error) {
	var lost []driver.Renewal
	for i, err := range errs {
		if errors.Is(err, driver.ErrLost) {
			lost = append(lost, rs[i])
		}
	}
	if len(lost) > 0 {
		each(s, nodeLimit, s.nodes, func(ctx context.Context, n *node) (any, error) { return nil, n.abandon(ctx, lost) })
	}
}

// poll calls ask on all nodes, and returns the answer of the majority for each claim. poll
// returns when the result is certain for every claim and the remaining nodes have had a
// little time.
func (s *Store) poll(ctx context.Context, limit time.Duration, claims int, ask func(context.Context, *node) ([]error, error)) []error {
	if claims == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return slices.Repeat([]error{err}, claims)
	}
	counts := make([]count, claims)
	answers := each(s, limit, s.nodes, ask)
	began := time.Now()
	var enough <-chan time.Time
	for open := len(s.nodes); open > 0; {
		select {
		case a := <-answers:
			open--
			certain := true
			for i := range counts {
				counts[i].add(a.node, a.of(i))
				certain = certain && counts[i].certain(len(s.nodes))
			}
			if certain && enough == nil {
				enough = grace(began, time.Millisecond)
			}
		case <-enough:
			open = 0
		case <-ctx.Done():
			return s.verdicts(counts, ctx.Err())
		}
	}
	return s.verdicts(counts, nil)
}

// of is the answer of a node about claim i of a call.
func (a answer[T]) of(i int) error {
	errs, _ := any(a.value).([]error)
	switch {
	case a.err != nil:
		return a.named(a.err)
	case errs == nil:
		return nil
	case errs[i] == nil || errors.Is(errs[i], driver.ErrLost) || errors.Is(errs[i], driver.ErrInvalid):
		return errs[i]
	}
	return a.named(errs[i])
}

// verdicts returns the results of a poll. cut is the reason if the poll ended early, else
// nil.
func (s *Store) verdicts(counts []count, cut error) (errs []error) {
	for i := range counts {
		if err := counts[i].verdict(len(s.nodes), cut); err != nil {
			if errs == nil {
				errs = make([]error, len(counts))
			}
			errs[i] = err
		}
	}
	return errs
}

// A count collects the answers of the nodes about one claim.
type count struct {
	answers, yes  int
	lost, invalid int
	why           error   // of the nodes that report a loss, the most telling error
	wrong         error   // an error of a node that reports an invalid claim
	unknown       []error // the errors of the remaining nodes
}

func (c *count) add(n *node, err error) {
	c.answers++
	switch {
	case err == nil:
		c.yes++
	case errors.Is(err, driver.ErrLost):
		c.lost++
		if c.why == nil || errors.Is(err, driver.ErrBroken) {
			c.why = err
		}
	case errors.Is(err, driver.ErrInvalid):
		c.invalid++
		c.wrong = n.named(err)
	default:
		c.unknown = append(c.unknown, err)
	}
}

// certain reports whether the missing answers cannot change the result.
func (c *count) certain(nodes int) bool {
	return c.answers == nodes || c.yes >= nodes/2+1 || blocks(c.lost, nodes) || blocks(c.invalid, nodes)
}

// blocks reports whether a majority is out of reach after so many refusals.
func blocks(no, nodes int) bool { return nodes-no < nodes/2+1 }

func (c *count) verdict(nodes int, cut error) error {
	switch {
	case c.yes >= nodes/2+1:
		return nil
	case blocks(c.lost, nodes):
		return c.why
	case blocks(c.invalid, nodes):
		return c.wrong
	}
	errs := c.unknown
	if c.wrong != nil {
		errs = append(errs, errors.New(c.wrong.Error())) // not certainly invalid
	}
	if cut != nil {
		errs = append(errs, cut)
	}
	return &tooFewError{answered: c.yes + c.lost, nodes: nodes, errs: errs}
}
