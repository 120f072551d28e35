package main

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
)

// events collects the events of the run's locks.
type events struct {
	owner   string        // as the store shows this process; known once a lock is acquired
	renewed chan struct{} // receives after a renewal
	risk    atomic.Pointer[holdfast.Event]
	tried   atomic.Pointer[holdfast.Event] // the last attempt without a lock
}

func (e *events) trace() *holdfast.Trace {
	e.renewed = make(chan struct{}, 1)
	return &holdfast.Trace{
		Locked: func(event holdfast.Event) { e.owner = event.Owner },
		Tried:  func(event holdfast.Event) { e.tried.Store(&event) },
		AtRisk: func(event holdfast.Event) { e.risk.Store(&event) },
		Renewed: func(holdfast.Event) {
			select {
			case e.renewed <- struct{}{}:
			default:
			}
		},
	}
}

// trouble returns the error of the last failed renewals; nil if unknown.
func (e *events) trouble() error {
	if risk := e.risk.Load(); risk != nil {
		return risk.Err
	}
	return nil
}
