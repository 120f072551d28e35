// Package canary judges whether a server excludes. A store acquires locks of random names over two
// connections, before the first lock of a caller, and refuses a server that grants one lock twice.
//
// A failover looks the same for a moment: one connection still leads to the old primary, which
// accepts writes, and the other to the new primary. But a failover moves new connections once, and
// they stay at the new primary. So a server is refused only if connections, made one after the
// other, change the server a second time.
package canary

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Lie is evidence that a server does not exclude. A Lie matches [driver.ErrInvalid].
type Lie struct{ What string }

func (l *Lie) Error() string { return driver.ErrInvalid.Error() + ": " + l.What }

// Unwrap returns [driver.ErrInvalid].
func (l *Lie) Unwrap() error { return driver.ErrInvalid }

// A Doubt is evidence that a failover explains, too. The same call may succeed later.
type Doubt struct {
	What  string
	Cause error // nil if the connections could be compared
}

func (d *Doubt) Error() string {
	text := "two connections do not exclude each other at the moment, as during a failover: " + d.What
	if d.Cause != nil {
		text += ": " + d.Cause.Error()
	}
	return text
}

// Unwrap returns the cause, unless the cause is a refusal, as of a standby: a Doubt refuses nothing.
func (d *Doubt) Unwrap() error {
	if errors.Is(d.Cause, driver.ErrInvalid) {
		return nil
	}
	return d.Cause
}

// connections is how many new connections have to lead to at most two servers, one after the
// other. A balancer that picks one of two servers by chance does so in 1 of 16 cases.
const connections = 8

// Prove compares the store's own connection with new connections, until two exclude each other, or
// until it is clear that they do not. dial makes a connection, and the function that ends it.
// compare returns a [Lie] if the claims of one connection are not in the way of the other's.
//
// Prove returns nil if the server excludes, a Lie if it does not, and a [Doubt] if there is
// evidence that a failover explains. Any other error shows nothing.
func Prove[C any](own C, dial func() (C, func(), error), compare func(first, second C) error) error {
	last, end, err := dial()
	if err != nil {
		return err
	}
	defer func() { end() }()
	err = compare(own, last)
	evidence := lie(err)
	if evidence == nil {
		return err
	}
	changes := 0
	for range connections - 1 {
		next, endNext, err := dial()
		if err != nil {
			return &Doubt{evidence.What, err}
		}
		err = compare(last, next)
		end()
		last, end = next, endNext
		switch again := lie(err); {
		case again != nil && changes > 0:
			return again
		case again != nil:
			changes++
		case err != nil:
			return &Doubt{evidence.What, err}
		}
	}
	switch err := compare(own, last); {
	case err == nil:
		return nil
	case lie(err) != nil:
		return &Doubt{What: evidence.What}
	default:
		return &Doubt{evidence.What, err}
	}
}

// Limit returns a context for a canary. It ends after most, and after half of the caller's time:
// a connection may hang, and the lock itself needs the rest.
func Limit(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/2)
	}
	return context.WithTimeout(ctx, most)
}

func lie(err error) *Lie {
	var l *Lie
	errors.As(err, &l)
	return l
}
