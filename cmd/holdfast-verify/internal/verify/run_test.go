package verify

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/memlock"
)

// That the page cannot be written is said before anything is done.
func TestPageIsTried(t *testing.T) {
	c := Default()
	c.HTML = filepath.Join(t.TempDir(), "missing", "page.html")
	c.Out = t.TempDir()
	c.Progress = func(line string) { t.Error(line) }
	if report, err := Run(t.Context(), c); report != nil || err == nil || !strings.Contains(err.Error(), c.HTML) {
		t.Errorf("got %v, %v", report, err)
	}
}

var errGone = errors.New("the server is gone")

// A gone store cannot say what is in it.
type gone struct{ *memlock.Store }

func (gone) Keys(context.Context, string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", errGone) }
}

// sceneOf is a scene whose workers have written down these events.
func sceneOf(t *testing.T, locks *holdfast.Locker, events ...history.Event) *scene {
	t.Helper()
	dir := t.TempDir()
	w, err := history.Create(filepath.Join(dir, parentFile), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		w.Add(e)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.TTL, c.Nemeses, c.Keys = time.Second, []plan.Nemesis{plan.Kill}, 1
	c.HTML = filepath.Join(dir, "missing", "page.html")
	return &scene{Config: c, dir: dir, locks: locks, target: &target{name: "mem", url: &url.URL{Scheme: "mem"}, engine: &engine{}}}
}

// The history is judged, whatever went wrong at the end.
func TestFailureIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := must.Get(holdfast.New(gone{memlock.New()}, nil))
		defer locks.Close()
		s := sceneOf(t, locks,
			history.Event{At: 10, Kind: history.Asked, Worker: 1, Life: 1, Client: 1, Op: 1, Key: "key0", Mode: "exclusive", Weight: 1, Limit: 1},
			history.Event{At: 20, Kind: history.Got, Worker: 1, Life: 1, Client: 1, Op: 1, Key: "key0", Token: 7},
			history.Event{At: 30, Kind: history.Lost, Worker: 1, Life: 1, Client: 1, Op: 1, Key: "key0"},
			history.Event{At: 30, Kind: history.Died, Worker: 1, Life: 1, Note: "exit status 2"},
		)
		s.fail("do harm", errors.New("the server\ndoes not start"))
		report, err := s.judge(t.Context(), s.look(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if report.Grants != 1 || report.Violations[check.Tidy] == 0 || report.Err() == nil {
			t.Errorf("the history is not judged: %+v", report)
		}
		for _, want := range []string{errGone.Error(), "do harm: the server; does not start", "only 1 locks", "page.html"} {
			if !strings.Contains(report.Invalid, want) {
				t.Errorf("%q does not say %q", report.Invalid, want)
			}
		}
	})
}

// A run that is interrupted while it judges ends at once.
func TestJudgeIsInterrupted(t *testing.T) {
	locks := must.Get(holdfast.New(memlock.New(), nil))
	defer locks.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, s := range []*scene{sceneOf(t, locks), sceneOf(t, locks, history.Event{At: 1, Kind: history.Born})} {
		if report, err := s.judge(ctx, nil); report != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, %v", report, err)
		}
	}
}

// The history stays unless nothing was wrong, or the run was given up.
func TestHistoryIsLeft(t *testing.T) {
	given, cancel := context.WithCancel(t.Context())
	cancel()
	sound, invalid := &Report{}, &Report{Invalid: "nothing happened"}
	for name, test := range map[string]struct {
		ctx    context.Context
		report *Report
		err    error
		stays  bool
	}{
		"sound":       {t.Context(), sound, nil, false},
		"invalid":     {t.Context(), invalid, nil, true},
		"failed":      {t.Context(), nil, errGone, true},
		"interrupted": {given, nil, context.Canceled, false},
	} {
		s := sceneOf(t, nil)
		err := Config{}.leave(test.ctx, s.dir, test.report, test.err)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v", name, err)
		}
		if stays := s.exists(); stays != test.stays {
			t.Errorf("%s: the history stays: %v", name, stays)
		}
		if test.err != nil && test.stays && !strings.Contains(err.Error(), s.dir) {
			t.Errorf("%s: %v does not say where the history is", name, err)
		}
	}
}

func (s *scene) exists() bool {
	all, _ := filepath.Glob(filepath.Join(s.dir, parentFile))
	return len(all) > 0
}

// A stubborn server can be stopped, and not started.
type stubborn struct {
	*servers.Host
	restarts int
}

func (s *stubborn) Kill()   {}
func (s *stubborn) Pause()  {}
func (s *stubborn) Resume() {}
func (s *stubborn) Restart() {
	if s.restarts++; s.restarts == 2 {
		s.Fatalf("no more")
	}
	time.Sleep(2 * time.Second) // longer than until the next fault
}

// The faults of servers come in order, however long a fault takes. After a failure no fault
// follows.
func TestServersSufferInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, err := history.Create(filepath.Join(t.TempDir(), parentFile), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer parent.Close()
		host := &servers.Host{}
		server := &stubborn{Host: host}
		c := &crew{host: host, history: parent, target: &target{engine: &engine{nodes: []node{server}}}}
		var faults []plan.Fault
		for n := range 4 {
			faults = append(faults, plan.Fault{At: time.Duration(n) * time.Second, Nemesis: plan.Restart, Worker: -1})
		}
		began := time.Now()
		err = c.suffer(t.Context(), t.Context(), 0, faults)
		if err == nil || !strings.Contains(err.Error(), "no more") {
			t.Errorf("got %v", err)
		}
		if past := time.Since(began); server.restarts != 2 || past != 2*time.Second {
			t.Errorf("%d restarts after %v", server.restarts, past)
		}
	})
}

// The report prints the whole command, not the seed alone.
func TestAgain(t *testing.T) {
	c := Default()
	c.Seed, c.Length = 7, 30*time.Second
	own := c
	own.Store, own.Clients, own.Kinds, own.TTL = "given", 9, []plan.Kind{plan.Try, plan.Slots}, time.Minute
	started := c
	started.Start, started.Nemeses = "redis:3", []plan.Nemesis{plan.Kill, plan.Clock}
	idle := c
	idle.Nemeses = []plan.Nemesis{}
	for want, s := range map[string]*scene{
		"holdfast verify --for 30s --seed 7": {Config: c},
		"holdfast verify --store 'redis://u:xxxxx@h/1?wait=1' --kind try,slots --for 30s --ttl 1m0s --clients 9 --seed 7": {
			Config: own, target: &target{name: "redis://u:xxxxx@h/1?wait=1"}},
		"holdfast verify --start redis:3 --nemesis kill,clock --for 30s --seed 7": {Config: started, named: true},
		"holdfast verify --nemesis none --for 30s --seed 7":                       {Config: idle, named: true},
	} {
		if got := s.again(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A run that has no length lasts until each fault has come, and one that leaves out
// some says so.
func TestEveryFaultComes(t *testing.T) {
	c := Default()
	c.Nemeses = plan.Nemeses()
	for c.Seed = range uint64(20) {
		s := &scene{Config: c, target: &target{url: &url.URL{Scheme: "etcd"}, engine: &engine{nodes: make([]node, 3)}}}
		if err := s.schedule(); err != nil || s.Length < usual {
			t.Fatalf("%v, %v", s.Length, err)
		}
		for _, n := range c.Nemeses {
			if !slices.ContainsFunc(s.faults, func(f plan.Fault) bool { return f.Nemesis == n }) {
				t.Errorf("seed %d: no %s in %v", c.Seed, n, s.Length)
			}
		}
	}
	r := &Report{Nemeses: []Nemesis{{Name: "kill", Faults: 2, Hits: 1}, {Name: "cut-store"}, {Name: "flush"}}}
	if got := r.faults(); got != "2 kill; not done: cut-store, flush" {
		t.Errorf("got %q", got)
	}
}

// Servers are left alone for so long that somebody who waits has no excuse, for longer
// than is put up with.
func TestServersAreLeftAlone(t *testing.T) {
	c := Default()
	c.Nemeses, c.Length = []plan.Nemesis{plan.Restart}, 2*time.Minute
	for _, scheme := range []string{"redis", "etcd", "zk", "memcached", "nats", "s3"} {
		s := &scene{Config: c, target: &target{url: &url.URL{Scheme: scheme}, engine: &engine{nodes: make([]node, 1)}}}
		if err := s.schedule(); err != nil || len(s.faults) < 3 {
			t.Fatalf("%s: %v, %v", scheme, s.faults, err)
		}
		var calm time.Duration
		for i, f := range s.faults[1:] {
			calm = max(calm, f.At-s.faults[i].At-s.faults[i].For)
		}
		if calm <= s.manners().Place+grace {
			t.Errorf("%s is left alone for %v", scheme, calm)
		}
	}
}

// A run whose history can no more be judged ends, and says so.
func TestLongRunEnds(t *testing.T) {
	for name, test := range map[string]struct {
		most int64
		want time.Duration
	}{
		"too much to judge": {40, time.Second},
		"little":            {mostHistory, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := sceneOf(t, nil, history.Event{At: 1, Kind: history.Born, Note: "40 bytes, with all that is around this"})
			s.Length, s.most = time.Hour, test.most
			began := time.Now()
			length, end := s.within(t.Context())
			<-length.Done()
			end()
			if past := time.Since(began); past != test.want {
				t.Errorf("%s: it has ended after %v, want %v", name, past, test.want)
			}
			r := s.report()
			if early := r.Ended != ""; early != (test.want < s.Length) || r.Seconds != test.want.Seconds() {
				t.Errorf("%s: %v seconds, %q", name, r.Seconds, r.Ended)
			}
			if err := r.Err(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A run goes on if too little has happened, unless another round cannot change that.
func TestShort(t *testing.T) {
	got := history.Event{At: 20, Kind: history.Got, Worker: 1, Life: 1, Client: 1, Op: 1, Key: "key0", Token: 7}
	asked := history.Event{At: 10, Kind: history.Asked, Worker: 1, Life: 1, Client: 1, Op: 1, Key: "key0", Mode: "exclusive", Weight: 1, Limit: 1}
	fault := history.Event{At: 15, Kind: history.Fault, Worker: 1, Op: 1, Mode: string(plan.Kill)}
	for name, test := range map[string]struct {
		fewest int
		events []history.Event
		faults int // planned
		full   bool
		failed bool
		want   string
	}{
		"no lock":              {1, nil, 1, false, false, "only 0 locks"},
		"a lock and no fault":  {1, []history.Event{asked, got}, 1, false, false, "no fault came"},
		"a lock and a fault":   {1, []history.Event{asked, got, fault}, 1, false, false, ""},
		"too few locks":        {2, []history.Event{asked, got, fault}, 1, false, false, "only 1 locks"},
		"no fault is planned":  {1, []history.Event{asked, got}, 0, false, false, ""},
		"the history is full":  {2, []history.Event{asked, got}, 1, true, false, ""},
		"the run itself fails": {2, []history.Event{asked, got}, 1, false, true, ""},
	} {
		s := sceneOf(t, nil, test.events...)
		s.Fewest, s.faults = test.fewest, make([]plan.Fault, test.faults)
		if test.full {
			s.cut = time.Second
		}
		if test.failed {
			s.fail("do harm", errGone)
		}
		if why, err := s.short(t.Context()); err != nil || (why == "") != (test.want == "") || !strings.Contains(why, test.want) {
			t.Errorf("%s: %q, %v; want %q", name, why, err, test.want)
		}
	}
}

func TestMajority(t *testing.T) {
	for _, test := range []struct {
		first, n int
		want     []int
	}{{0, 1, []int{0}}, {2, 3, []int{2, 0}}, {1, 5, []int{1, 2, 3}}} {
		if got := majority(test.first, test.n); !slices.Equal(got, test.want) {
			t.Errorf("of %d servers from %d on: %v, want %v", test.n, test.first, got, test.want)
		}
	}
}
