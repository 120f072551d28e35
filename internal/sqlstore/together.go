package sqlstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/detached"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// together combines requests of different calls. While there are few requests, each has a statement
// of its own. Requests that come while enough statements are under way share the next statement.
type together[R any] struct {
	some  func(context.Context, []R) error                // sends a statement for several requests, which get the results
	most  func() int                                      // how many statements keep others waiting
	turn  func(context.Context) (leave func(), err error) // waits before a statement
	alone func(error) bool                                // each request may succeed alone, after this error

	mu      sync.Mutex
	running int
	leads   []*lead // of the running statements, the oldest first; without those that were slow
	waiting []*sharer[R]
	looks   bool // a timer calls slow
}

// A lead is a statement for one request.
type lead struct{ began time.Time }

// A sharer is a request that shares a statement with others.
type sharer[R any] struct {
	ctx     context.Context
	request R
	over    chan struct{} // closed when the statement has ended
	err     error
}

// patience is how long a statement for one request keeps others from theirs. The row of its key may be
// locked.
const patience = 50 * time.Millisecond

// mostTogether is how many requests share a statement at most.
const mostTogether = 100

// do sends a request by one, or together with others. A detached call stays until the statement has
// ended, and any other call leaves when ctx ends.
func (tg *together[R]) do(ctx context.Context, r R, one func() error) error {
	sh := &sharer[R]{ctx: ctx, request: r}
	if l := tg.enter(sh); l != nil {
		defer tg.end(l)
		return one()
	}
	select {
	case <-sh.over:
	case <-ctx.Done():
		if tg.leave(sh) || !detached.Runs(ctx) {
			return ctx.Err()
		}
		<-sh.over
	}
	if sh.err != nil && tg.alone(sh.err) {
		return one()
	}
	return sh.err
}

// enter returns a lead if the caller may send a statement; the caller then calls end. Otherwise sh
// waits for the statement of another caller.
func (tg *together[R]) enter(sh *sharer[R]) *lead {
	most := tg.most()
	tg.mu.Lock()
	defer tg.mu.Unlock()
	if tg.running < most {
		l := &lead{time.Now()}
		tg.running++
		tg.leads = append(tg.leads, l)
		return l
	}
	sh.over = make(chan struct{})
	tg.waiting = append(tg.waiting, sh)
	tg.look()
	return nil
}

// look starts a timer for the oldest lead, unless nobody waits for its end. The caller holds mu.
func (tg *together[R]) look() {
	if len(tg.waiting) > 0 && len(tg.leads) > 0 && !tg.looks {
		tg.looks = true
		time.AfterFunc(patience-time.Since(tg.leads[0].began), tg.slow)
	}
}

// slow lets others have the places of slow leads.
func (tg *together[R]) slow() {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	tg.looks = false
	for len(tg.waiting) > 0 && len(tg.leads) > 0 && time.Since(tg.leads[0].began) >= patience {
		tg.leads = slices.Delete(tg.leads, 0, 1)
		go tg.send(tg.next())
	}
	tg.look()
}

// end ends a lead.
func (tg *together[R]) end(l *lead) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	i := slices.Index(tg.leads, l)
	if i < 0 { // It was slow.
		return
	}
	tg.leads = slices.Delete(tg.leads, i, i+1)
	if next := tg.next(); next != nil {
		go tg.send(next)
	}
}

// next returns the requests of the statement that takes the place of a statement that has ended;
// none if nobody waits. The caller holds mu.
func (tg *together[R]) next() []*sharer[R] {
	n := min(len(tg.waiting), mostTogether)
	if n == 0 {
		tg.running--
		return nil
	}
	next := slices.Clone(tg.waiting[:n])
	tg.waiting = slices.Delete(tg.waiting, 0, n)
	return next
}

// leave reports whether sh has waited until now, and waits no more.
func (tg *together[R]) leave(sh *sharer[R]) bool {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	i := slices.Index(tg.waiting, sh)
	if i >= 0 {
		tg.waiting = slices.Delete(tg.waiting, i, i+1)
	}
	return i >= 0
}

// send sends statements until nobody waits.
func (tg *together[R]) send(next []*sharer[R]) {
	for next != nil {
		tg.share(next)
		tg.mu.Lock()
		next = tg.next()
		tg.mu.Unlock()
	}
}

// share sends a statement.
func (tg *together[R]) share(all []*sharer[R]) {
	callers := make([]context.Context, len(all))
	for i, sh := range all {
		callers[i] = sh.ctx
		defer close(sh.over)
	}
	ctx, over := detached.Joint(callers)
	defer over()
	leave, err := tg.turn(ctx)
	if err == nil {
		defer leave()
	}
	var sent []*sharer[R]
	var requests []R
	for _, sh := range all {
		if sh.err = err; err == nil {
			sh.err = detached.Write(sh.ctx)
		}
		if sh.err == nil {
			sent, requests = append(sent, sh), append(requests, sh.request)
		}
	}
	if len(sent) > 0 {
		err = tg.some(ctx, requests)
	}
	for _, sh := range sent {
		sh.err = err
	}
	if ctx.Err() == nil {
		return
	}
	for _, sh := range all {
		sh.err = silence.For(sh.ctx, sh.err, 0) // Each caller has left for its own reason.
	}
}
