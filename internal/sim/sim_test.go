package sim

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/sim/exact"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run this seed, and no other")
	budget  = flag.Duration("for", 20*time.Second, "run new seeds for so long, all tests together")
	first   = flag.Uint64("first", 0, "begin with this seed, not with a random one")
	exactly = flag.Uint64("seeds", 0, "run so many seeds, however long they take")
	folder  = flag.String("timeline", "", "write timeline.txt and timeline.html of the world of -seed, or of the one that failed, into this `folder`")
)

func init() {
	flag.Uint64Var(&exact.Order, "order", 0, "let goroutines run in this order: for internal/sim/replay")
}

// TestSeeds runs worlds of the whole engine on stores of one server.
func TestSeeds(t *testing.T) { seeds(t, 0.5, engine.explore) }

// enough is how many worlds have at least one grant among them.
const enough = 50

// seeds runs worlds of new seeds until a share of the budget is used up, and goes on while
// nothing was granted: locks, effects or leaders.
func seeds(t *testing.T, share float64, explore func(*testing.T, uint64) *World) {
	var last *World
	ended = func(w *World) { last = w }
	defer func() {
		if last != nil && (given("seed") || t.Failed()) {
			write(t, last)
		}
	}()
	if given("seed") {
		t.Log(explore(t, *oneSeed).Count.String())
		return
	}
	var total Count
	base := NewSeed()
	if given("first") {
		base = *first
	}
	began := time.Now()
	more := func(n uint64) bool {
		return time.Since(began) < time.Duration(share*float64(*budget)) || total.Grants == 0 && n < enough
	}
	if given("seeds") {
		more = func(n uint64) bool { return n < *exactly }
	}
	seed := base
	defer func() {
		if t.Failed() {
			t.Logf("again: go test ./internal/sim -run ^%s$ -args -seed=%d", t.Name(), seed)
		}
	}()
	for n := uint64(0); more(n) && !t.Failed(); n++ {
		seed = base + n
		total.Add(&explore(t, seed).Count)
	}
	t.Log(total.String())
	if total.Grants == 0 && total.Seeds >= enough && !t.Failed() {
		t.Errorf("nothing is proved: nothing was granted in %d seeds", total.Seeds)
	}
}

// given reports whether a flag was given: 0 is a seed too.
func given(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// write writes the timeline of a world, if -timeline says where to.
func write(t *testing.T, w *World) {
	if *folder == "" {
		return
	}
	for name, to := range map[string]func(io.Writer) error{"timeline.txt": w.WriteTimeline, "timeline.html": w.WritePage} {
		file, err := os.Create(filepath.Join(*folder, name))
		if err == nil {
			err = errors.Join(to(file), file.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
}
