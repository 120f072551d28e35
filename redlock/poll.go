package redlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Renew implements [driver.Store]. What a majority says is so. A node that has
// lost a claim does not get it back.
func (s *Store) Renew(ctx context.Context, cs []driver.Claim) []error {
	invalid := make([]error, len(cs))
	kept := cs[:0:0]
	for i, c := range cs {
		if invalid[i] = s.lasting(c); invalid[i] == nil {
			kept = append(kept, c)
		}
	}
	errs := s.poll(ctx, nodeLimit, len(kept), func(ctx context.Context, n *node) ([]error, error) { return n.renew(ctx, kept) })
	s.abandon(kept, errs)
	if len(kept) == len(cs) {
		return errs
	}
	for i := range invalid {
		if invalid[i] == nil && errs != nil {
			invalid[i], errs = errs[0], errs[1:]
		}
	}
	return invalid
}

// Release implements [driver.Store]. What a majority says is so. The others are
// told in the background if they take much longer, until they have answered or
// the TTL has passed; whoever comes next should rather find all nodes free, and
// have one to lose.
func (s *Store) Release(ctx context.Context, cs []driver.Claim) []error {
	if err := ctx.Err(); err != nil {
		return slices.Repeat([]error{err}, len(cs))
	}
	cs = slices.Clone(cs) // Calls that go on in the background read it.
	part(s.nodes, cs)
	return s.poll(ctx, nodeLimit, len(cs), func(ctx context.Context, n *node) ([]error, error) { return n.release(ctx, cs) })
}

// part takes note that claims are about to be released on nodes.
func part(nodes []*node, cs []driver.Claim) {
	for _, n := range nodes {
		n.part(cs)
	}
}

// abandon releases the claims that a majority has lost on the nodes that keep
// them still, where they are in the way.
func (s *Store) abandon(cs []driver.Claim, errs []error) {
	var lost []driver.Claim
	for i, err := range errs {
		if errors.Is(err, driver.ErrLost) {
			lost = append(lost, cs[i])
		}
	}
	if len(lost) > 0 {
		each(s, nodeLimit, s.nodes, func(ctx context.Context, n *node) (any, error) { return nil, n.abandon(ctx, lost) })
	}
}

// poll asks all nodes about claims, and returns for each what a majority says,
// once that is certain for all and the other nodes have had a little time.
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

// of is what a node says of one claim of a call.
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

// verdicts are the results of a poll. cut is why it ended before its time.
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

// A count is what nodes say of one claim.
type count struct {
	answers, yes  int
	lost, invalid int
	why           error   // the most telling of those that say that it is lost
	wrong         error   // one of those that say that it is invalid
	unknown       []error // of the others
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

// certain reports whether the nodes that have not answered can change nothing.
func (c *count) certain(nodes int) bool {
	return c.answers == nodes || c.yes >= nodes/2+1 || blocks(c.lost, nodes) || blocks(c.invalid, nodes)
}

// blocks reports whether so many nodes that say no leave no majority to say yes.
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
		errs = append(errs, errors.New(c.wrong.Error())) // not invalid by all means
	}
	if cut != nil {
		errs = append(errs, cut)
	}
	return &tooFewError{answered: c.yes + c.lost, nodes: nodes, errs: errs}
}
