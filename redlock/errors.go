package redlock

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A quarantineError says that a node does not count, because the node may have forgotten claims.
type quarantineError struct{ age, out time.Duration }

func (e *quarantineError) Error() string {
	return fmt.Sprintf("restarted %v ago; it counts in %v, when what it may have forgotten is over", e.age.Round(time.Millisecond), e.out.Round(time.Millisecond))
}

// A tooFewError says that the outcome of a call is unknown, because too few nodes have
// answered. It matches the errors of the nodes.
type tooFewError struct {
	answered, nodes int
	errs            []error
}

func (e *tooFewError) Error() string {
	var b strings.Builder
	need := e.nodes/2 + 1
	answered := "answered"
	if out := (*quarantineError)(nil); errors.As(errors.Join(e.errs...), &out) {
		answered = "answered and count"
	}
	fmt.Fprintf(&b, "%d of %d nodes %s, %d needed", e.answered, e.nodes, answered, need)
	if e.answered >= need {
		b.WriteString(" to agree, and they do not")
	}
	for i, err := range e.errs {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		b.WriteString(err.Error())
	}
	return b.String()
}

func (e *tooFewError) Unwrap() []error { return e.errs }
