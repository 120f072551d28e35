package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/register"
)

const (
	// window is the least number of operations for a call of Porcupine, if there are enough
	// operations. A window ends when no operation is under way.
	window = 500

	// windowTime is how long Porcupine may think about a window. A timeout is a fault of
	// the run: the run has proved nothing.
	windowTime = 30 * time.Second
)

// Fence checks [Fenced]: the fenced registers are linearizable, and have accepted no token
// after a larger token. Fence gives up when ctx ends.
func (r *Run) Fence(ctx context.Context) (all []Violation) {
	for key, accesses := range byKey(r.Accesses, func(a *Access) string { return a.Key }) {
		slices.SortFunc(accesses, func(a, b *Access) int { return cmp.Compare(a.Call, b.Call) })
		all = append(all, accepted(key, accesses)...)
		for i, some := range windows(accesses) {
			if ctx.Err() != nil {
				return nil
			}
			all = append(all, linearizable(key, i == 0, some, windowTime)...)
		}
	}
	return all
}

// accepted finds tokens that came, for certain, after a larger token.
func accepted(key string, byCall []*Access) (all []Violation) {
	counted := slices.DeleteFunc(slices.Clone(byCall), func(a *Access) bool { return a.No || a.Unknown || !a.Look && !a.Write })
	byReturn := slices.Clone(counted)
	slices.SortFunc(byReturn, func(a, b *Access) int { return cmp.Compare(a.Return, b.Return) })
	var largest *Access
	for _, a := range counted {
		for len(byReturn) > 0 && byReturn[0].Return < a.Call {
			if largest == nil || byReturn[0].Token > largest.Token {
				largest = byReturn[0]
			}
			byReturn = byReturn[1:]
		}
		if largest != nil && a.Token < largest.Token {
			all = append(all, Violation{Check: Fenced, Key: key, At: a.Call, Text: fmt.Sprintf(
				"the register has accepted token %d of %s after token %d of %s", a.Token, a.Who, largest.Token, largest.Who)})
		}
	}
	return all
}

// windows divides accesses, which are in order of their calls.
func windows(accesses []*Access) (all [][]*Access) {
	from, last := 0, int64(0)
	for i, a := range accesses {
		if i-from >= window && a.Call > last {
			all = append(all, accesses[from:i])
			from = i
		}
		last = max(last, a.Return)
	}
	return append(all, accesses[from:])
}

// linearizable asks Porcupine, which may think for up to limit.
func linearizable(key string, first bool, accesses []*Access, limit time.Duration) []Violation {
	model := fenced(first)
	v := Violation{Check: Fenced, Key: key, At: accesses[len(accesses)-1].Call, Reach: accesses[0].Call}
	switch porcupine.CheckOperationsTimeout(model, operations(accesses), limit) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		v.Unproved = true
		v.Text = fmt.Sprintf("Porcupine is not done with %d operations after %v", len(accesses), limit)
		return []Violation{v}
	}
	v.Text = fmt.Sprintf("the fenced register is not linearizable within these %d operations", len(accesses))
	_, info := porcupine.CheckOperationsVerbose(model, operations(accesses), limit)
	var view strings.Builder
	if err := porcupine.Visualize(model, info, &view); err == nil { // without the view, the verdict stands
		v.View = view.String()
	}
	return []Violation{v}
}

// operations converts accesses for Porcupine. Each goroutine is a client.
func operations(accesses []*Access) []porcupine.Operation {
	all := make([]porcupine.Operation, len(accesses))
	clients := make(map[Who]int)
	for i, a := range accesses {
		if _, known := clients[a.Who]; !known {
			clients[a.Who] = len(clients)
		}
		all[i] = porcupine.Operation{ClientId: clients[a.Who], Input: *a, Output: *a, Call: a.Call, Return: a.Return}
	}
	return all
}

// A state is Porcupine's view of a register. At the start of a window the past of the
// register is unknown.
type state struct {
	known bool
	value uint64
	token uint64
}

// fenced models a register that refuses tokens smaller than the largest seen.
func fenced(first bool) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{known: first}} },
		Step: func(s, input, _ any) []any { return s.(state).after(input.(Access)) },
	}
	m := model.ToModel()
	m.DescribeOperation = func(input, _ any) string { return input.(Access).String() }
	return m
}

// String returns a short text for Porcupine's view: the last digits of a token, and the
// origin of a value in the plan.
func (a Access) String() string {
	const digits = 1_000_000
	text := "reads " + name(a.Value)
	switch {
	case a.Look:
		text = fmt.Sprintf("%06d sees %s", a.Token%digits, name(a.Value))
	case a.Write:
		text = fmt.Sprintf("%06d writes %s", a.Token%digits, name(a.Value))
	}
	switch {
	case a.Unknown:
		text += ", or not"
	case a.No:
		text += ": refused"
	}
	return text
}

// name returns the value of a register for people.
func name(value uint64) string {
	if value == 0 {
		return "nothing"
	}
	worker, life, client, op := plan.Origin(value)
	return fmt.Sprintf("%d.%d/%d #%d", worker, life, client, op)
}

// after returns the possible next states of the register; nil if the access is impossible.
func (s state) after(a Access) []any {
	next := state{known: true, value: a.Value, token: a.Token}
	fits := !s.known || a.Token >= s.token
	switch {
	case !a.Look && !a.Write: // a read
		if s.known && s.value == a.Value {
			return []any{s}
		}
		if !s.known {
			return []any{s} // the value could be known now, but not the token
		}
		return nil
	case a.Unknown && a.Look:
		next.value = s.value
		if !s.known {
			return []any{s}
		}
	case a.Look && fits && !a.No:
		if s.known && s.value != a.Value {
			return nil
		}
		return []any{next}
	case a.Look && a.No, a.Write && a.No:
		if s.known && a.Token >= s.token {
			return nil
		}
		return []any{s}
	}
	switch {
	case a.Unknown && fits:
		return []any{s, next}
	case a.Unknown:
		return []any{s}
	case fits:
		return []any{next}
	}
	return nil
}

// Chain checks the rest of [Fenced] by the register's own record of accepted accesses: no
// token comes after a larger token, and each write follows the previous write. So no update
// was lost.
func Chain(key string, records []register.Record) (all []Violation) {
	var last register.Record // the last write
	var token uint64
	for _, r := range records {
		if r.Token < token {
			all = append(all, Violation{Check: Fenced, Key: key, Text: fmt.Sprintf(
				"the register's record has token %d after token %d", r.Token, token)})
		}
		token = max(token, r.Token)
		if r.Value == 0 {
			continue
		}
		if r.Seen != last.Value {
			all = append(all, Violation{Check: Fenced, Key: key, Text: fmt.Sprintf(
				"an update is lost: token %d has written over that of token %d without having seen it", r.Token, last.Token)})
		}
		last = r
	}
	return all
}

// Hurt counts the damage that exclusion by lease alone has let happen in a plain register.
// A stale write has a smaller token than an earlier write, so a fence would have refused
// the write. An update is lost if the next write does not follow the update.
func Hurt(records []register.Record) (stale, lost int) {
	var last, token uint64
	for _, r := range records {
		if r.Token < token {
			stale++
		}
		if r.Seen != last {
			lost++
		}
		token, last = max(token, r.Token), r.Value
	}
	return stale, lost
}
