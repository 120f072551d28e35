package engine

import "github.com/holdfast-go/holdfast/driver"

func (c *call) event() Event { return Event{Context: c.ctx, Key: c.Key} }

// reportTried reports that the store did not grant.
func (c *call) reportTried(g driver.Grant, err error) {
	if err == nil {
		err = c.Words.Held(refusalOf(g))
	}
	c.report(c.Hooks.Tried, err)
}

func (c *call) reportWanted() {
	if c.Hooks.Wanted != nil {
		c.Hooks.Wanted(c.event())
	}
}

// reportLocked reports that the caller has a hold.
func (c *call) reportLocked(h *Hold) {
	if c.Hooks.Locked != nil {
		e := h.event(h.since)
		e.Waited = h.since - c.began
		c.Hooks.Locked(e)
	}
}

func (c *call) report(hook func(Event), err error) {
	if hook == nil {
		return
	}
	e := c.event()
	e.Waited, e.Err = c.now()-c.began, err
	hook(e)
}

// reportStuck reports that the call waits for a hold of this engine that has lasted for long: the
// call may be nested in the work that it waits for.
func (c *call) reportStuck() {
	if c.Hooks.Stuck == nil {
		return
	}
	c.lock()
	held := c.refusalLocked(c.turn)
	c.unlock()
	c.Hooks.Stuck(c.event(), *held)
}
