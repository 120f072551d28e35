package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/worker"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// Run does a run and judges the history. An error reports that the run could not be done;
// [Report.Err] reports the findings. When ctx ends, the workers are killed and Run returns
// the cause of ctx.
func Run(ctx context.Context, c Config) (*Report, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	report, err := c.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // every other error follows from it
	}
	return report, err
}

// Work is the life of a worker process, which reads its instructions from in.
func Work(ctx context.Context, in io.Reader, out io.Writer) error { return worker.Run(ctx, in, out) }

func (c Config) run(ctx context.Context) (report *Report, err error) {
	if err := c.tryPage(); err != nil {
		return nil, err
	}
	folder, err := c.folder()
	if err != nil {
		return nil, err
	}
	defer func() { err = c.leave(ctx, folder, report, err) }()
	h := &servers.Host{}
	defer func() {
		if err := h.Close(); err != nil { // no news about the store
			h.Logf("end the servers: %v", err)
		}
	}()
	c.progress("starting %s", cmp.Or(c.Start, "workers"))
	t, err := c.newTarget(ctx, h, folder)
	if err != nil {
		return nil, err
	}
	named := c.Nemeses != nil
	if c.Nemeses, err = t.suffers(c.Nemeses); err != nil {
		return nil, err
	}
	locks, err := t.open(ctx, c.TTL)
	if err != nil {
		return nil, err
	}
	s := &scene{Config: c, began: time.Now(), named: named, dir: folder, host: h, target: t, locks: locks, most: mostHistory}
	if err := s.play(ctx); err != nil {
		return nil, errors.Join(err, locks.Close())
	}
	left := s.look(ctx)
	s.fail("close", locks.Close())
	s.count(ctx)
	return s.judge(ctx, left)
}

// leave removes the folder of a run that has ended well, and of an abandoned run. After a
// finding, or after an error of a begun run, the history stays. A folder that the user has
// named always stays.
func (c Config) leave(ctx context.Context, folder string, report *Report, err error) error {
	_, unbegun := os.Stat(filepath.Join(folder, parentFile))
	switch {
	case c.Out != "", report != nil && report.Err() != nil:
		return err
	case err != nil && ctx.Err() == nil && unbegun == nil:
		return fmt.Errorf("%w (the history is in %s)", err, folder)
	case report != nil:
		report.History = ""
	}
	return errors.Join(err, os.RemoveAll(folder))
}

// folder makes the folder of the run.
func (c Config) folder() (string, error) {
	if c.Out == "" {
		return os.MkdirTemp("", "holdfast-verify-")
	}
	if err := os.MkdirAll(c.Out, 0o700); err != nil {
		return "", err
	}
	if all, err := os.ReadDir(c.Out); err != nil || len(all) > 0 {
		return "", errors.Join(err, fmt.Errorf("%s is not empty: name a new folder for the history", c.Out))
	}
	return filepath.Abs(c.Out)
}

// A scene is a run in progress.
type scene struct {
	Config
	began  time.Time
	named  bool // the user named the nemeses: every nemesis has to come
	dir    string
	host   *servers.Host
	target *target
	locks  *holdfast.Locker
	kinds  []plan.Kind
	faults []plan.Fault

	most     int64         // bytes of history
	cut      time.Duration // when the history had grown to most, 0 for never
	extra    int           // rounds after the first
	extended string        // why there are extra rounds
	load     load
	blind    bool     // the store cannot show its claims
	litter   []string // remains in the servers
	failures []string // failures of the run itself since the workers began
}

// parentFile is the history of the process that does the harm.
const parentFile = "parent.jsonl"

// fail records a failure, if err is not nil. The run has proved nothing then, but its
// results are still judged.
func (s *scene) fail(what string, err error) {
	if err != nil {
		s.failures = append(s.failures, fmt.Sprintf("%s: %v", what, err))
	}
}

// play lets the workers work while faults are done. play returns an error if the workers
// could not begin. Later failures are recorded with fail.
func (s *scene) play(ctx context.Context) (err error) {
	if err := s.schedule(); err != nil {
		return err
	}
	if s.kinds, err = s.target.kinds(ctx, s.locks, s.Kinds); err != nil {
		return err
	}
	if err := s.guard(ctx); err != nil {
		return err
	}
	parent, err := history.Create(filepath.Join(s.dir, parentFile), 0, 0)
	if err != nil {
		return err
	}
	defer func() { s.fail("write the history", parent.Close()) }()
	c := &crew{Config: s.Config, folder: s.dir, host: s.host, target: s.target, kinds: s.kinds, history: parent}
	s.progress("%s: starting %d workers", s.target.name, s.Workers)
	if err := c.hire(ctx); err != nil {
		c.dismiss()
		return err
	}
	defer c.dismiss()
	for {
		if err := s.round(ctx, c); err != nil {
			return err
		}
		if s.extra == mostExtra {
			break
		}
		why, err := s.short(ctx)
		if err != nil {
			return err
		}
		if why == "" {
			break
		}
		s.extra, s.extended = s.extra+1, why
	}
	s.progress("%s: waiting for the workers to end", s.target.name)
	return nil
}

// round does the faults at the planned times, and returns when the time of the run is over.
func (s *scene) round(ctx context.Context, c *crew) error {
	defer s.watch()()
	length, end := s.within(ctx)
	defer end()
	if err := c.suffer(ctx, length, s.extra*len(s.faults), s.faults); err != nil {
		s.fail("do harm", err)
		return nil
	}
	<-length.Done()
	return ctx.Err()
}

// tryPage reports early, before the run, that the page cannot be written.
func (c Config) tryPage() error {
	if c.HTML == "" {
		return nil
	}
	_, missing := os.Lstat(c.HTML)
	file, err := os.OpenFile(c.HTML, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("the page of the run: %w", err)
	}
	err = file.Close()
	if missing != nil {
		err = errors.Join(err, os.Remove(c.HTML))
	}
	return err
}

// schedule plans the faults. If the user has named nemeses, every named nemesis has to fit
// in.
func (s *scene) schedule() error {
	f := plan.Faults{Seed: s.Seed, Nemeses: s.Nemeses, Workers: s.Workers, Nodes: len(s.target.engine.nodes), TTL: s.TTL, Length: s.Length, Respite: s.respite()}
	if s.Length == 0 {
		s.Length = max(usual, f.Enough())
		f.Length = s.Length
	}
	s.faults = f.Schedule()
	for _, n := range s.Nemeses {
		if s.named && !slices.ContainsFunc(s.faults, func(f plan.Fault) bool { return f.Nemesis == n }) {
			return fmt.Errorf("%w: no %s fits into a run of %v with these TTLs: let it last %v", ErrNemesis, n, s.Length, f.Enough())
		}
	}
	return nil
}

// watch reports the progress of a round until stop is called.
func (s *scene) watch() (stop func()) {
	began, done := time.Now(), make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		tick := time.NewTicker(loadPeriod)
		defer tick.Stop()
		for {
			s.load.sample(loadavg())
			past := min(time.Since(began), s.Length)
			before := time.Duration(s.extra) * s.Length
			s.progress("%s: %v of %v, %d of %d faults", s.target.name, (before + past).Round(time.Second), before+s.Length,
				s.extra*len(s.faults)+s.begun(past), (s.extra+1)*len(s.faults))
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		told.Wait()
	}
}

// begun counts the faults until a time.
func (s *scene) begun(past time.Duration) (n int) {
	for _, f := range s.faults {
		if f.At <= past {
			n++
		}
	}
	return n
}
