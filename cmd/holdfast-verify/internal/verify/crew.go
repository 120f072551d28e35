package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/worker"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A place is where one worker after the other works.
type place struct {
	crew   *crew
	number int
	link   *link

	life    int
	process *process // nil if no process could be started
}

// A crew is every worker of a run.
type crew struct {
	Config
	folder  string
	host    *servers.Host
	target  *target
	kinds   []plan.Kind
	history *history.Writer // of the parent
	places  []*place
}

// hire starts the workers, and lets the workers begin when every worker is ready.
func (c *crew) hire(ctx context.Context) error {
	for n := range c.Workers {
		link, err := newLink(c.host, c.target.url, c.Nemeses)
		if err != nil {
			return err
		}
		c.places = append(c.places, &place{crew: c, number: n, link: link})
	}
	errs := make([]error, c.Workers)
	var all sync.WaitGroup
	for n, p := range c.places {
		all.Go(func() {
			if errs[n] = p.fill(ctx); errs[n] == nil && p.link.unused() {
				errs[n] = fmt.Errorf("%w: %s goes around the proxy before %s, so nothing can harm its network: leave such faults out",
					ErrNemesis, p.process, c.target.name)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, p := range c.places {
		if err := p.process.begin(); err != nil {
			return err
		}
	}
	return nil
}

// fill starts the next worker of a place.
func (p *place) fill(ctx context.Context) error {
	c := p.crew
	p.life++
	config := c.Config
	if c.Beside != "" && p.number%2 == 1 {
		config.Command = []string{c.Beside, worker.Argument}
	}
	next, err := config.start(ctx, c.history, worker.Job{
		Protocol:  worker.Protocol,
		Worker:    p.number,
		Life:      p.life,
		Clients:   c.Clients,
		Store:     p.link.url,
		Clocked:   slices.Contains(c.Nemeses, plan.WorkerClock),
		Prefix:    c.target.prefix,
		History:   filepath.Join(c.folder, fmt.Sprintf("worker%d.%d.jsonl", p.number, p.life)),
		Registers: c.target.registers,
		Effects:   filepath.Join(c.folder, "effects"),
		Workload:  plan.Workload{Seed: c.Seed, Kinds: c.kinds, Keys: c.Keys, TTL: c.TTL},
	})
	if err != nil {
		return err
	}
	p.process = next
	return nil
}

// suffer does the faults at the planned times, until length ends or a fault fails, and
// returns when every fault is over. The faults of a worker, or of the servers, are done in
// order, because recovery may take long on a slow machine. Workers that are started
// meanwhile are killed when ctx ends. The history numbers the faults from before+1 on.
func (c *crew) suffer(ctx, length context.Context, before int, faults []plan.Fault) error {
	length, stop := context.WithCancel(length)
	defer stop()
	began := time.Now()
	victims := make(map[int][]int) // the indices of their faults
	for i, f := range faults {
		victims[f.Worker] = append(victims[f.Worker], i)
	}
	errs := make([]error, len(faults))
	var all sync.WaitGroup
	for _, some := range victims {
		all.Go(func() {
			for _, i := range some {
				if rest.For(length, time.Until(began.Add(faults[i].At))) != nil {
					return
				}
				if errs[i] = c.harm(ctx, length, before+i+1, faults[i]); errs[i] != nil {
					stop()
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// harm does a fault and records the fault. After the end of length, harm does nothing.
func (c *crew) harm(ctx, length context.Context, number int, f plan.Fault) (err error) {
	if length.Err() != nil {
		return nil
	}
	harm := history.Event{Kind: history.Fault, Worker: f.Worker, Op: number, Mode: string(f.Nemesis), Step: int64(f.Step), Note: f.For.String()}
	if f.Nemesis.Server() {
		if f, harm.Role, err = c.target.aim(c.host, f); err != nil {
			return err
		}
		if !f.Nemesis.TakeOver() {
			harm.Node = f.Node + 1
		}
	}
	if f.Part {
		harm.Node = c.places[f.Worker].link.address(f.Node) + 1
	}
	harm.At = history.Now()
	c.history.Add(harm)
	heal := history.Event{Kind: history.Heal, Worker: f.Worker, Op: number}
	if f.Nemesis.Server() {
		heal.Note, err = c.target.suffer(length, c.host, f)
	} else {
		p := c.places[f.Worker]
		before := p.link.touched()
		err = p.suffer(ctx, length, f)
		heal.Value = uint64(p.link.touched() - before)
	}
	heal.At = history.Now()
	c.history.Add(heal)
	return err
}

// suffer does a fault to a worker. A worker that has ended without a fault cannot be
// harmed, and suffer returns no error then. The history records the end, and the place
// stays empty until the next kill.
func (p *place) suffer(ctx, length context.Context, f plan.Fault) error {
	err := p.harm(ctx, length, f)
	if err != nil && p.process != nil && p.process.over() {
		return nil
	}
	return err
}

func (p *place) harm(ctx, length context.Context, f plan.Fault) error {
	switch f.Nemesis {
	case plan.Kill:
		p.process.kill()
		p.process = nil
		if err := p.fill(ctx); err != nil {
			return err
		}
		return p.process.begin()
	case plan.Pause:
		if err := p.process.pause(); err != nil {
			return fmt.Errorf("pause %s: %w", p.process, err)
		}
		rest.For(length, f.For)
		return p.process.resume()
	case plan.Partition:
		p.link.cut(f, true)
		defer p.link.cut(f, false)
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
		rest.For(length, f.For)
		return p.process.setClock(0)
	}
	rest.For(length, f.For)
	return nil
}

// dismiss lets the workers end. The history records how each worker ended.
func (c *crew) dismiss() {
	var all sync.WaitGroup
	for _, p := range c.places {
		if p.process != nil {
			all.Go(func() { p.process.end() })
		}
	}
	all.Wait()
}
