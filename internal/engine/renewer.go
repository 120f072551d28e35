package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// maxRounds bounds the calls of a core that renew at the same time.
const maxRounds = 8

// A renewer keeps the leases of a core alive. A goroutine sleeps until a lease is due
// for a renewal, a warning, or the end. The goroutine never waits for the store, so a silent
// store delays no announcement of a loss. Renewals run in rounds, a goroutine and a batch of
// claims per round.
type renewer struct{ *core }

// add puts a lease into the agenda. The first lease starts the goroutine.
func (r renewer) add(t *table, l *lease, now time.Duration) {
	if !t.renewing {
		t.renewing = true
		r.busy.Go(r.run)
	}
	r.lookSooner(t.agenda.add(l, now))
}

func (r renewer) run() {
	timer := r.clock.NewTimer(0)
	defer timer.Stop()
	for {
		t := r.lock()
		w := t.agenda.due(r.now(), r.closed.Load())
		r.unlock()
		r.act(w)
		timer.Reset(w.wait)
		select {
		case <-timer.C:
		case <-r.sooner:
		case <-r.closing:
			return
		}
	}
}

// act does the work of a look, without the mutex.
func (r renewer) act(w *work) {
	for _, l := range w.lost {
		l.hold.lose(l.why)
	}
	for _, l := range w.dropped {
		loseDropped(r.core, l)
	}
	for _, e := range w.atRisk {
		emit(r.Hooks.AtRisk, e)
	}
	for _, round := range w.rounds {
		r.busy.Go(func() { r.serve(round) })
	}
}

// serve makes the call of a round.
func (r renewer) serve(round *round) {
	defer close(round.done)
	r.rounds <- struct{}{}
	defer func() { <-r.rounds }()
	r.lock()
	renewals, limit := round.start(r.now())
	r.unlock()
	if len(renewals) == 0 {
		return
	}
	sent := r.now()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	errs := answers(len(renewals), r.Store.Renew(ctx, renewals))
	all, renewed := r.finish(round, sent, errs)
	for _, l := range all {
		l.hold.lose(l.why)
	}
	for _, e := range renewed {
		emit(r.Hooks.Renewed, e)
	}
}

// finish records the answers. finish returns the lost holds and, for the hook, the events
// of the renewed holds.
func (r renewer) finish(round *round, sent time.Duration, errs []error) (gone []lost, renewed []Event) {
	t := r.lock()
	defer r.unlock()
	for i, l := range round.leases {
		l.round = nil
		switch err := errs[i]; {
		case err == nil:
			l.confirm(sent)
			if h := l.holder(); h != nil && r.Hooks.Renewed != nil {
				renewed = append(renewed, h.event(r.now()))
			}
		case errors.Is(err, driver.ErrLost):
			l.move(reported) // An Unlock that comes first must not hand the claim over.
			if h := l.holder(); h != nil {
				gone = append(gone, lost{h, lossOf(err)})
			}
			continue
		default:
			l.failure = silence.Of(err, r.now()-sent)
			l.backoff = min(max(2*l.backoff, firstRetry), callLimit(l.ttl))
			l.due = r.now() + jitter(l.backoff)
			l.open = l.due
		}
		if l.index > 0 {
			r.lookSooner(t.agenda.move(l, r.now()))
		}
	}
	return gone, renewed
}
