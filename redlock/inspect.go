package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// inspectLimit is the time in which a node has to answer an Inspector or a Checker.
const inspectLimit = 5 * time.Second

var errNoInspector = errors.New("cannot show its claims")

// gather calls f on all nodes, and returns the answers once a majority has answered. For
// the remaining nodes gather waits 100 ms more, a delay that a person does not notice.
func gather[T any](ctx context.Context, s *Store, limit time.Duration, f func(context.Context, *node) (T, error)) (got []answer[T], err error) {
	answers := each(s, limit, s.nodes, f)
	var errs []error
	var enough <-chan time.Time
	for open := len(s.nodes); open > 0; {
		if enough == nil && len(got) >= s.majority() {
			enough = time.After(100 * time.Millisecond)
		}
		select {
		case a := <-answers:
			open--
			if a.err == nil {
				got = append(got, a)
			} else {
				errs = append(errs, a.named(a.err))
			}
		case <-enough:
			open = 0
		case <-ctx.Done():
			open, errs = 0, append(errs, ctx.Err())
		}
	}
	if len(got) < s.majority() {
		return nil, &tooFewError{len(got), len(s.nodes), errs}
	}
	return got, nil
}

// inspect calls f with the store of the node.
func (n *node) inspect(ctx context.Context, f func(driver.Inspector) error) error {
	return n.call(ctx, func(inner driver.Store) error {
		inspector, ok := inner.(driver.Inspector)
		if !ok {
			return errNoInspector
		}
		return f(inspector)
	})
}

// Holders implements [driver.Inspector]. Holders returns the claims that most of the
// answering nodes know. A claim that holds on most of the answering nodes is a holder. The
// remaining claims are waiters, even if some nodes have granted them.
func (s *Store) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	answers, err := gather(ctx, s, inspectLimit, func(ctx context.Context, n *node) (hs []driver.Holder, err error) {
		err = n.inspect(ctx, func(inner driver.Inspector) (err error) {
			hs, err = inner.Holders(ctx, key)
			return err
		})
		return hs, err
	})
	if err != nil {
		return nil, err
	}
	return assemble(answers), nil
}

// A view is what the nodes report of one claim.
type view struct {
	holds, waits []driver.Holder
	places       []int // positions in the lists of the nodes
}

func assemble(answers []answer[[]driver.Holder]) (shown []driver.Holder) {
	views := make(map[string]*view)
	for _, a := range answers {
		for place, h := range a.value {
			of := views[h.ID]
			if of == nil {
				of = &view{}
				views[h.ID] = of
			}
			of.places = append(of.places, place)
			if h.Waiting {
				of.waits = append(of.waits, h)
			} else {
				of.holds = append(of.holds, h)
			}
		}
	}
	most := len(answers)/2 + 1
	var known []*view
	for _, of := range views {
		if slices.Sort(of.places); len(of.places) >= most {
			known = append(known, of)
		}
	}
	slices.SortFunc(known, func(a, b *view) int {
		return cmp.Or(
			-cmp.Compare(min(len(a.holds), most), min(len(b.holds), most)),
			cmp.Compare(a.places[most-1], b.places[most-1]),
			slices.Compare(a.places, b.places),
			cmp.Compare(a.any().ID, b.any().ID))
	})
	for _, of := range known {
		shown = append(shown, of.holder(most))
	}
	return shown
}

func (of *view) any() *driver.Holder {
	if len(of.holds) > 0 {
		return &of.holds[0]
	}
	return &of.waits[0]
}

// holder returns the claim as seen by the nodes that hold the claim. If too few nodes hold
// the claim, the claim is shown as waiting.
func (of *view) holder(most int) driver.Holder {
	h := *of.any()
	if len(of.holds) < most {
		h.Waiting, h.Fence = true, 0
		return h
	}
	common := 0
	for _, one := range of.holds {
		n := 0
		for _, other := range of.holds {
			if other.Fence == one.Fence {
				n++
			}
		}
		if n > common {
			common, h.Fence = n, one.Fence
		}
	}
	// The claim stands as long as a majority of the nodes holds the claim.
	slices.SortFunc(of.holds, func(a, b driver.Holder) int { return -cmp.Compare(a.Left, b.Left) })
	h.Left = of.holds[most-1].Left
	return h
}

// Keys implements [driver.Inspector]. Keys yields the keys that most of the answering
// nodes know, after these nodes have listed all their keys.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		answers, err := gather(ctx, s, inspectLimit, func(ctx context.Context, n *node) (keys []string, err error) {
			err = n.inspect(ctx, func(inner driver.Inspector) error {
				for key, err := range inner.Keys(ctx, prefix) {
					if err != nil {
						return err
					}
					keys = append(keys, key)
				}
				return nil
			})
			return keys, err
		})
		if err != nil {
			yield("", err)
			return
		}
		nodes := make(map[string]int)
		for _, a := range answers {
			for _, key := range a.value {
				nodes[key]++
			}
		}
		for key, n := range nodes {
			if n > len(answers)/2 && !yield(key, nil) {
				return
			}
		}
	}
}

// Break implements [driver.Inspector]. The answer of a majority is the result.
func (s *Store) Break(ctx context.Context, key, id string) error {
	return first(s.poll(ctx, inspectLimit, 1, func(ctx context.Context, n *node) ([]error, error) {
		var errs []error
		err := n.inspect(ctx, func(inner driver.Inspector) error {
			errs = []error{inner.Break(ctx, key, id)}
			return unanswered(1, errs)
		})
		return errs, err
	}))
}

// A finding is what a node reports about its engine.
type finding struct {
	warnings []string
	invalid  error // why the node cannot keep claims
}

// Check implements [driver.Checker]. Nodes that cannot keep claims are warnings if the
// remaining nodes are a majority, and an error otherwise.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	if len(s.nodes)%2 == 0 {
		warnings = append(warnings, fmt.Sprintf("redlock has %d nodes: with one less, or one more, as many may fail without harm", len(s.nodes)))
	}
	answers, err := gather(ctx, s, inspectLimit, func(ctx context.Context, n *node) (found finding, err error) {
		err = n.call(ctx, func(inner driver.Store) (err error) {
			if checker, ok := inner.(driver.Checker); ok {
				found.warnings, err = checker.Check(ctx)
			}
			_ = n.checkAge(ctx, inner) // for blocked
			return err
		})
		if errors.Is(err, driver.ErrInvalid) {
			found.invalid, err = n.named(err), nil
		}
		return found, err
	})
	if err := s.blocked(); err != nil {
		warnings = append(warnings, fmt.Sprintf("redlock grants nothing yet: %v", err))
	}
	var invalid []error
	for _, a := range answers {
		for _, w := range a.value.warnings {
			warnings = append(warnings, a.name+": "+w)
		}
		if a.value.invalid != nil {
			invalid = append(invalid, a.value.invalid)
		}
	}
	if len(s.nodes)-len(invalid) < s.majority() {
		return warnings, errors.Join(invalid...)
	}
	for _, why := range invalid {
		warnings = append(warnings, why.Error())
	}
	return warnings, err
}
