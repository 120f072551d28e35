package sim

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/sim/exact"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// Seeds are the flags of a package with random tests.
type Seeds struct {
	pkg    string
	began  time.Time
	flags  *flag.FlagSet
	one    uint64
	first  uint64
	count  uint64
	budget time.Duration
	folder string // of the timeline
	counts string // folder of the counts
}

// NewSeeds adds the flags of the random tests to those of a test program. pkg is the
// folder of the package, such as ./internal/sim.
func NewSeeds(flags *flag.FlagSet, pkg string) *Seeds {
	s := &Seeds{pkg: pkg, began: time.Now(), flags: flags}
	flags.Uint64Var(&s.one, "seed", 0, "run this seed, and no other")
	flags.DurationVar(&s.budget, "for", 20*time.Second, "run new seeds for so long, all tests together; the default if HOLDFAST_TEST_SEED is not set")
	flags.Uint64Var(&s.first, "first", 0, "begin with this seed, not with a random one")
	flags.Uint64Var(&s.count, "seeds", 0, "run so many seeds, however long they take")
	flags.StringVar(&s.folder, "timeline", "", "write timeline.txt and timeline.html of the world of -seed, or of the one that failed, into this `folder`")
	flags.StringVar(&s.counts, "counts", "", "write what happened in the worlds of each test into this `folder`: for internal/sim/tally")
	flags.Uint64Var(&exact.Order, "order", 0, "let goroutines run in this order: for internal/sim/replay")
	return s
}

// enough is how many worlds have at least one grant among them.
const enough = 50

// patience is how many times its share a test may take to run the worlds that it owes.
const patience = 3

// Run runs worlds of new seeds. If HOLDFAST_TEST_SEED fixes the seeds, Run runs least worlds: the
// same worlds on every machine, unless the package runs out of time. Otherwise Run goes on until
// a share of the budget is used up, and a slow machine may take longer. A report says if Run has
// run fewer worlds than least. In any case Run goes on while nothing was granted: locks, effects,
// leaders or ticks.
func (s *Seeds) Run(t *testing.T, share float64, least int64, explore func(*testing.T, uint64) *World) {
	var last *World
	ended = func(w *World) { last = w }
	defer func() {
		if last != nil && (s.given("seed") || t.Failed()) {
			s.write(t, last)
		}
	}()
	if s.given("seed") {
		t.Log(explore(t, s.one).Count.String())
		return
	}
	var total Count
	base := NewSeed()
	if s.given("first") {
		base = s.first
	}
	more := s.more(share, least)
	seed := base
	defer func() {
		if t.Failed() {
			t.Logf("again: go test %s -run ^%s$ -args -seed=%d; exactly: make replay SEED=%d REPLAY=-test=%s", s.pkg, t.Name(), seed, seed, t.Name())
		}
	}()
	for n := uint64(0); more(&total) && !t.Failed(); n++ {
		seed = base + n
		total.Add(&explore(t, seed).Count)
	}
	t.Log(total.String())
	s.tell(t, &total)
	switch {
	case t.Failed():
	case total.Grants == 0 && total.Seeds >= enough:
		t.Errorf("nothing is proved: nothing was granted in %d seeds", total.Seeds)
	case total.Seeds < least && !s.given("seeds"):
		unproved.Logf(t, "only %d of %d worlds were run", total.Seeds, least)
	}
}

// inTime reports whether the package has a quarter of its time left, for a world that begins now.
func (s *Seeds) inTime() bool {
	limit := s.flags.Lookup("test.timeout")
	if limit == nil {
		return true
	}
	all := limit.Value.(flag.Getter).Get().(time.Duration)
	return all == 0 || time.Since(s.began) < all*3/4
}

// more returns whether to run a further world.
func (s *Seeds) more(share float64, least int64) func(*Count) bool {
	began := time.Now()
	within := func(shares float64) bool {
		return time.Since(began) < time.Duration(shares*share*float64(s.budget))
	}
	var owed func(worlds int64) bool
	switch {
	case s.given("seeds"):
		return func(c *Count) bool { return uint64(c.Seeds) < s.count }
	case fixed() && !s.given("for"):
		owed = func(worlds int64) bool { return worlds < least && s.inTime() }
	default:
		owed = func(worlds int64) bool { return within(1) || worlds < least && within(patience) }
	}
	return func(c *Count) bool { return owed(c.Seeds) || c.Grants == 0 && c.Seeds < enough }
}

// given reports whether a flag was given: 0 is a seed too.
func (s *Seeds) given(name string) (given bool) {
	s.flags.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// write writes the timeline of a world, if -timeline says where to.
func (s *Seeds) write(t *testing.T, w *World) {
	if s.folder == "" {
		return
	}
	for name, to := range map[string]func(io.Writer) error{"timeline.txt": w.WriteTimeline, "timeline.html": w.WritePage} {
		file, err := os.Create(filepath.Join(s.folder, name))
		if err == nil {
			err = errors.Join(to(file), file.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// tell writes what happened in all worlds of a test, if -counts says where to.
func (s *Seeds) tell(t *testing.T, total *Count) {
	if s.counts == "" {
		return
	}
	text, err := json.Marshal(total)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.counts, t.Name()+".json"), text, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}
