package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/history"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/worker"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// A place is where one worker after the other works.
type place struct {
	crew   *crew
	number int
	link   *link

	mu      sync.Mutex // held while a fault is done: to start a worker may take long
	life    int
	process *process // nil after it was killed in the last moment
}

// A crew is all workers of a run.
type crew struct {
	Config
	folder  string
	host    *servers.Host
	target  *target
	kinds   []plan.Kind
	history *history.Writer // of the parent
	places  []*place
	servers sync.Mutex // held while a fault is done to one of them
}

// hire starts all workers, and returns when they are ready.
func (c *crew) hire(ctx context.Context) error {
	errs := make([]error, c.Workers)
	var all sync.WaitGroup
	for n := range c.Workers {
		link, err := newLink(c.host, c.target)
		if err != nil {
			return err
		}
		p := &place{crew: c, number: n, link: link}
		c.places = append(c.places, p)
		all.Go(func() { errs[n] = p.fill(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// fill starts the next worker of a place.
func (p *place) fill(ctx context.Context) error {
	c := p.crew
	p.life++
	next, err := c.start(ctx, c.history, worker.Job{
		Worker:    p.number,
		Life:      p.life,
		Clients:   c.Clients,
		Store:     p.link.url,
		Clocked:   slices.Contains(c.Nemeses, plan.WorkerClock),
		Prefix:    c.target.prefix,
		History:   filepath.Join(c.folder, fmt.Sprintf("worker%d.%d.jsonl", p.number, p.life)),
		Registers: c.folder,
		Workload:  plan.Workload{Seed: c.Seed, Kinds: c.kinds, Keys: c.Keys, TTL: c.TTL},
	})
	if err != nil {
		return err
	}
	p.process = next
	return nil
}

// begin lets all workers begin.
func (c *crew) begin() error {
	for _, p := range c.places {
		if err := p.process.begin(); err != nil {
			return err
		}
	}
	return nil
}

// suffer does the faults at their times, until length ends, and returns when all
// harm is over. Workers that are started meanwhile are killed when ctx ends.
func (c *crew) suffer(ctx, length context.Context, faults []plan.Fault) error {
	began := time.Now()
	errs := make([]error, len(faults))
	var all sync.WaitGroup
	for i, f := range faults {
		all.Go(func() {
			if !sleep(length, time.Until(began.Add(f.At))) {
				return
			}
			errs[i] = c.harm(ctx, length, i+1, f)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// harm does one fault, and writes it down. A victim may not have got over the last
// one yet, on a slow machine; there is no harm any more once length has ended.
func (c *crew) harm(ctx, length context.Context, number int, f plan.Fault) (err error) {
	victim := &c.servers
	if !f.Nemesis.Server() {
		victim = &c.places[f.Worker].mu
	}
	victim.Lock()
	defer victim.Unlock()
	if length.Err() != nil {
		return nil
	}
	harm := history.Event{Kind: history.Fault, Worker: f.Worker, Op: number, Mode: string(f.Nemesis), Note: f.For.String()}
	harm.At = history.Now()
	c.history.Add(harm)
	var evicted string
	if f.Nemesis.Server() {
		evicted, err = c.target.suffer(length, c.host, f)
	} else {
		err = c.places[f.Worker].suffer(ctx, length, f)
	}
	c.history.Add(history.Event{At: history.Now(), Kind: history.Heal, Worker: f.Worker, Op: number, Note: evicted})
	return err
}

// suffer does one fault to a worker. It is called with mu held.
func (p *place) suffer(ctx, length context.Context, f plan.Fault) error {
	switch f.Nemesis {
	case plan.Kill:
		p.process.kill()
		p.process = nil
		if length.Err() != nil {
			return nil
		}
		if err := p.fill(ctx); err != nil {
			return err
		}
		return p.process.begin()
	case plan.Pause:
		if err := p.process.pause(); err != nil {
			return fmt.Errorf("pause %s: %w", p.process, err)
		}
		sleep(length, f.For)
		return p.process.resume()
	case plan.Partition:
		p.link.cut(true)
		defer p.link.cut(false)
	case plan.DropReply:
		p.link.dropReplies(true)
		defer p.link.dropReplies(false)
	case plan.Slow:
		p.link.delay(f.Delay)
		defer p.link.delay(0)
	case plan.WorkerClock:
		if err := p.process.setClock(f.Step); err != nil {
			return fmt.Errorf("set the clock of %s: %w", p.process, err)
		}
		sleep(length, f.For)
		return p.process.setClock(0)
	}
	sleep(length, f.For)
	return nil
}

// sleep reports whether it has slept so long before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// dismiss lets all workers end. How they have ended is in the history.
func (c *crew) dismiss() {
	var all sync.WaitGroup
	for _, p := range c.places {
		if p.process != nil {
			all.Go(func() { p.process.end() })
		}
	}
	all.Wait()
}
