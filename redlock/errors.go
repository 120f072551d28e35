package redlock

import (
	"fmt"
	"strings"
)

// A tooFewError says that the outcome of a call is unknown, because too few
// nodes have answered. It matches their errors.
type tooFewError struct {
	answered, nodes int
	errs            []error
}

func (e *tooFewError) Error() string {
	var b strings.Builder
	need := e.nodes/2 + 1
	fmt.Fprintf(&b, "%d of %d nodes answered, %d needed", e.answered, e.nodes, need)
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
