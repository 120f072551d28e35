package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/internal/publish"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A plan says what to measure, and how.
type plan struct {
	match *regexp.Regexp // of store/bench
	scale scale
	seed  uint64 // decides the order in which sides take turns
}

func newPlan(match string, s scale, seed uint64) (p plan, err error) {
	p = plan{scale: s, seed: seed}
	p.match, err = regexp.Compile(match)
	if err == nil && len(p.names()) == 0 {
		err = errors.New("it matches nothing: -list shows what there is")
	}
	return p, err
}

// names returns the names of the benches in the plan, as store/bench.
func (p plan) names() (all []string) {
	for _, st := range stores.All() {
		for _, b := range p.benches(st) {
			all = append(all, st.Name+"/"+b.name)
		}
		if p.holds(st) {
			all = append(all, st.Name+"/"+held)
		}
	}
	return all
}

// benches returns the benches of a store that the plan runs by turns.
func (p plan) benches(st stores.Store) (all []bench) {
	for _, b := range benches {
		if b, ok := b.at(st); ok && b.waiting <= p.scale.waiting && p.match.MatchString(st.Name+"/"+b.name) {
			all = append(all, b)
		}
	}
	return all
}

// holds reports whether to hold locks in a store.
func (p plan) holds(st stores.Store) bool {
	return len(st.Only) == 0 && p.match.MatchString(st.Name+"/"+held) &&
		slices.ContainsFunc(st.Sides, func(s stores.Side) bool { return s.Renews })
}

// runAll measures one store after another. If the servers of a store are not installed,
// runAll reports that and goes on. A store that fails does not stop runAll either.
func (p plan) runAll(ctx context.Context, out io.Writer) error {
	under := ""
	if commit := publish.Commit(ctx); commit != "" {
		under = " Commit " + commit + "."
	}
	fmt.Fprintf(out, "%s, %s/%s, %d processors, %d rounds, TTL %v, -seed=%d.%s%s\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), p.scale.rounds, p.scale.ttl, p.seed,
		under, load("before"))
	var missing []string
	var failed error
	for _, st := range stores.All() {
		if len(p.benches(st)) == 0 && !p.holds(st) {
			continue
		}
		host := &servers.Host{}
		var err error
		if trouble := host.Try(func() { err = p.run(ctx, host, st, out) }); trouble != nil {
			err = errors.Join(err, trouble)
		}
		err = errors.Join(err, host.Close())
		if errors.Is(err, servers.ErrMissing) {
			missing = append(missing, fmt.Sprintf("%s: %v", st.Title, err))
		} else if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", st.Title, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	for _, text := range missing {
		fmt.Fprintf(out, "Not measured: %s.\n\n", text)
	}
	if text := load("after"); text != "" {
		fmt.Fprintln(out, strings.TrimSpace(text))
	}
	return failed
}

// run measures one store.
func (p plan) run(ctx context.Context, tb servers.TB, st stores.Store, out io.Writer) (err error) {
	chosen, processes := p.benches(st), 1
	for _, b := range chosen {
		processes = max(processes, b.processes)
	}
	f, err := open(tb, st, p.scale, processes, p.seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	fmt.Fprintf(out, "### %s\n\n", st.Title)
	about := versions(st.Modules)
	if f.server.About != "" {
		about = slices.Insert(about, 0, f.server.About)
	}
	fmt.Fprintf(out, "%s.\n\n", strings.Join(about, "; "))
	for _, b := range chosen {
		results, err := f.run(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		printResults(out, b, st, p.scale, results)
	}
	if !p.holds(st) {
		return nil
	}
	holdings, err := f.hold(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", held, err)
	}
	printHoldings(out, p.scale, st, holdings)
	return nil
}

// load reports how busy the machine is, on systems with a load average.
func load(when string) string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	one, _, _ := strings.Cut(string(text), " ")
	return fmt.Sprintf(" Load average %s: %s.", when, one)
}
