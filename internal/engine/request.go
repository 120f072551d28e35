package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Request is what a caller wants.
type Request struct {
	Key string // as stored
	Terms
	Bounds
	Wait    time.Duration
	Limited bool // Wait is a limit

	Least, Most time.Duration // of a sleep between two tries, in place of a wait; 0: wait

	Fenced bool // the store must have tokens
}

// instant reports whether the call does not wait at the store.
func (r *Request) instant() bool { return r.Most > 0 || r.Limited && r.Wait == 0 }

// Terms are what two holds must have in common for one claim to serve both in turn.
type Terms struct {
	Weight, Limit int64 // see driver.Claim
	TTL           time.Duration
	NoRenew       bool
	Note          string
}

// Exclusive reports whether the terms are those of the whole key.
func (t Terms) Exclusive() bool { return t.Weight == driver.MaxWeight }

// Bounds are how long a hold may and must last.
type Bounds struct {
	MaxHold  time.Duration // 0: no limit
	Progress time.Duration // the longest time between two reports of progress; 0: no limit
	MinHold  time.Duration
	ctx      context.Context // for hooks that see the hold end; else nil
}
