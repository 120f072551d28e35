package sim

import "time"

// A course is the schedule of a world: faults for a while, then none. After the aftermath
// of the faults, every goroutine acquires every key once more.
type course struct {
	ttl    time.Duration
	length time.Duration // of the part with faults
	settle time.Duration // the longest time of the aftermath
}

func newCourse(ttl time.Duration) course {
	// A cut link may hold a message for 4 TTL. The message may take 3 TTL more, and bring
	// a claim.
	return course{ttl: ttl, length: 20 * ttl, settle: (4+3+1)*ttl + 15*time.Second}
}

// calms ends the faults of the world in time, after a last fault. When the aftermath is
// over, calms calls judge.
func (c *course) calms(w *World, last, judge func()) {
	time.Sleep(c.length)
	for _, p := range w.Processes() {
		p.Thaw()
		for _, l := range p.Links() {
			l.Calm()
		}
	}
	last()
	time.Sleep(c.settle)
	judge()
}

// overdue makes the judge check calls that still wait when every call should have ended.
func (c *course) overdue(w *World) {
	select {
	case <-time.After(c.length + c.settle + 10*c.ttl):
		w.Judge.Overdue()
	case <-w.ctx.Done():
	}
}

// rests lets the goroutine sleep until the aftermath of the faults is over.
func (c *course) rests(r *Routine) {
	r.Sleep(c.length + c.settle + r.Upto(c.ttl) - r.P.w.Now())
}

// again makes the goroutine acquire each of several locks once more.
func (c *course) again(r *Routine, wants []Want) {
	for _, want := range wants {
		if r.P.ctx.Err() != nil || r.P.ended() {
			return
		}
		if h, err := r.Lock(r.P.ctx, want); err == nil {
			h.Hold(r.Upto(c.ttl / 4))
			_ = h.Unlock()
		}
		r.Sleep(r.Upto(c.ttl / 4))
	}
}
