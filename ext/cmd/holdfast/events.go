package main

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
)

// events keeps what a run wants to know of the lives of its locks.
type events struct {
	owner   string        // as the store shows us; known once a lock is taken
	renewed chan struct{} // receives after a renewal
	risk    atomic.Pointer[holdfast.Event]
}

func (e *events) trace() *holdfast.Trace {
	e.renewed = make(chan struct{}, 1)
	return &holdfast.Trace{
		Locked: func(event holdfast.Event) { e.owner = event.Owner },
		AtRisk: func(event holdfast.Event) { e.risk.Store(&event) },
		Renewed: func(holdfast.Event) {
			select {
			case e.renewed <- struct{}{}:
			default:
			}
		},
	}
}

// trouble is why the last renewals have failed, nil if that is not known.
func (e *events) trouble() error {
	if risk := e.risk.Load(); risk != nil {
		return risk.Err
	}
	return nil
}
