package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/register"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/shown"
	"github.com/holdfast-go/holdfast/internal/wallclock"
)

// look returns the claims that are left in the store.
func (s *scene) look(ctx context.Context) map[string][]driver.Holder {
	s.progress("%s: looking for what is left", s.target.name)
	left, err := s.target.remains(ctx, s.locks, s.lapse()+slack)
	if errors.Is(err, errors.ErrUnsupported) {
		s.blind = s.target.engine.left == nil
		return nil
	}
	s.fail("look for what is left in the store", err)
	return left
}

// judge reads and checks the history, including the claims left in the store.
func (s *scene) judge(ctx context.Context, left map[string][]driver.Holder) (*Report, error) {
	s.progress("%s: checking the history", s.target.name)
	run, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	r := s.report()
	r.meet(run.Faults)
	if err := r.checks(ctx, run, s, left); err != nil {
		return nil, err
	}
	r.count(run)
	waits := run.Waits(s.manners(), slack)
	r.Waits = Waits{Seconds: shown.Seconds(waits.All), Judged: shown.Seconds(waits.Judged)}
	r.Unchecked = run.Unchecked(s.TTL, slack, waits, grace)
	if why := s.busy(); why != "" {
		r.Unchecked[check.Lively] = why
	}
	if s.blind {
		r.Unchecked[check.Tidy] = "the store cannot show who has its locks: only what workers leave in their processes was looked at"
	}
	s.doubt(run.Failures)
	r.Invalid = s.invalid(r)
	if err := s.writePage(r, run); err != nil {
		s.fail("write the page", err)
		r.Invalid = s.invalid(r)
	}
	return r, nil
}

// read reads the history written up to now. That the wall clock of this machine was set is a fault
// of the run.
func (s *scene) read(ctx context.Context) (*check.Run, error) {
	files, err := histories(s.dir)
	if err != nil {
		return nil, err
	}
	run, err := check.Read(ctx, files)
	if by := wallclock.SetBy(s.began); err == nil && by != 0 && s.target.started {
		run.Faults = slices.Insert(run.Faults, 0, clockFault(by))
	}
	return run, err
}

// clockFault is a fault of all servers on this machine, whose wall clock was set at some time.
func clockFault(by time.Duration) check.Fault {
	return check.Fault{Span: check.Span{To: check.Never}, Nemesis: string(plan.Clock), Worker: anyWorker, Step: int64(by)}
}

// doubt records failures of the registers, which belong to the run.
func (s *scene) doubt(failures []string) {
	if len(failures) > 0 {
		s.fail(fmt.Sprintf("registers have failed %d workers", len(failures)), errors.New(failures[0]))
	}
}

// histories returns the files of a history. The name of the folder may look like a pattern.
func histories(folder string) (paths []string, err error) {
	all, err := os.ReadDir(folder)
	for _, entry := range all {
		if filepath.Ext(entry.Name()) == ".jsonl" {
			paths = append(paths, filepath.Join(folder, entry.Name()))
		}
	}
	return paths, err
}

// invalid returns the reason why a run has proved nothing; "" if the run has proved
// something.
func (s *scene) invalid(r *Report) string {
	reasons := s.failures
	if lacks := r.lacks(s.Fewest, s.named); lacks != "" {
		reasons = append([]string{lacks}, reasons...)
	}
	return strings.ReplaceAll(strings.Join(reasons, "; "), "\n", "; ")
}

// checks runs every check, until ctx ends.
func (r *Report) checks(ctx context.Context, run *check.Run, s *scene, left map[string][]driver.Holder) error {
	store := s.manners()
	found := slices.Concat(s.stuck(run, store), run.Left(left))
	checks := []func() []check.Violation{
		func() []check.Violation { return run.Exclusion(s.target.freesOnDeath) },
		func() []check.Violation { return run.Fence(ctx) },
		run.Succession, run.Belief, run.Losses,
		func() []check.Violation { return run.Tokens(store.Place) },
		func() []check.Violation { return run.Order(store) },
		func() []check.Violation { return run.Kept(s.TTL, slack) },
		run.Once,
	}
	for _, one := range checks {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		found = append(found, one()...)
	}
	found = append(found, r.guarded(ctx, s)...)
	for _, what := range s.litter {
		found = append(found, check.Violation{Check: check.Tidy, Text: what})
	}
	s.hold(r, found, run.Faults)
	return nil
}

// guarded checks the accesses that the registers have accepted.
func (r *Report) guarded(ctx context.Context, s *scene) (found []check.Violation) {
	registers, err := s.target.registers.Open(0)
	if err != nil {
		s.fail("open the registers", err)
		return nil
	}
	defer func() { s.fail("close the registers", registers.Close()) }()
	for _, key := range (plan.Workload{Keys: s.Keys}).Guarded() {
		fenced, err := registers.Records(ctx, register.Name{Key: key, Fenced: true})
		s.fail("read a register", err)
		found = append(found, check.Chain(key, fenced)...)
		plain, err := registers.Records(ctx, register.Name{Key: key})
		s.fail("read a register", err)
		stale, lost := check.Hurt(plain)
		r.Plain.Writes += len(plain)
		r.Plain.Stale += stale
		r.Plain.Lost += lost
	}
	return found
}

// hold counts violations against the store, unless the store does not promise to stand the
// faults before the violation.
func (s *scene) hold(r *Report, found []check.Violation, faults []check.Fault) {
	for _, v := range found {
		if v.Unproved {
			s.fail("check "+v.Key, errors.New(v.Text))
			continue
		}
		if by := s.excuse(v, faults); by != nil {
			if v.Given == "" { // else it says nothing
				r.Waived[v.Check]++
				r.after(by).Waived[v.Check]++
				r.Excused = show(r.Excused, v)
			}
			continue
		}
		r.Violations[v.Check]++
		if v.At != 0 {
			r.after(lastBefore(faults, v.At, anyWorker)).Violations[v.Check]++
		}
		r.Found = show(r.Found, v)
	}
}

// show adds a violation to the shown violations, unless enough violations of the check are
// shown.
func show(shown []check.Violation, v check.Violation) []check.Violation {
	n := 0
	for _, other := range shown {
		if other.Check == v.Check {
			n++
		}
	}
	if n < mostShown {
		shown = append(shown, v)
	}
	return shown
}

// lacks returns the reason why a run has shown nothing; "" if the run has shown something.
// Each nemesis that the user has named must come at least once.
func (r *Report) lacks(fewest int, named bool) string {
	var all []string
	if r.Grants < fewest {
		all = append(all, fmt.Sprintf("only %d locks were granted (want %d)", r.Grants, fewest))
	}
	hits := 0
	for _, n := range r.Nemeses {
		hits += n.Hits
		switch {
		case !named || n.Hits > 0:
		case plan.Nemesis(n.Name).Network():
			all = append(all, fmt.Sprintf("no %s held back, delayed or lost anything between a worker at work and the store", n.Name))
		default:
			all = append(all, fmt.Sprintf("no %s came while its victim was at work", n.Name))
		}
	}
	if !named && hits == 0 {
		all = append(all, "no fault came while its victim was at work")
	}
	return strings.Join(all, "; ")
}
