package verify

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/build"
	"github.com/holdfast-go/holdfast/internal/shown"
)

const (
	mostShown = 20 // violations of a check, in JSON and on the page
	mostTold  = 5  // of them, in the report for people
)

// A Report is the result of a run.
type Report struct {
	Store   string  `json:"store"`
	Seed    uint64  `json:"seed,string"`
	Command string  `json:"command"`          // repeats the operations and faults
	Build   string  `json:"build"`            // version and commit of this program
	Server  string  `json:"server,omitempty"` // the started servers and their version
	Seconds float64 `json:"seconds"`
	Ended   string  `json:"ended_early,omitempty"` // why the run was no longer
	More    string  `json:"extended,omitempty"`    // why the run was longer than planned
	TTL     float64 `json:"ttl_seconds"`
	Workers int     `json:"workers"`
	Clients int     `json:"clients"`
	Keys    int     `json:"keys"`

	Kinds      []plan.Kind           `json:"kinds"`
	Nemeses    []Nemesis             `json:"nemeses"`
	Before     Tally                 `json:"before_any_fault"`
	Operations int                   `json:"operations"`
	Grants     int                   `json:"grants"`
	Effects    int                   `json:"effects"` // begun effects, each to happen once
	Losses     int                   `json:"losses"`  // locks that were lost, with a report to the holder
	Refused    int                   `json:"refused"` // accesses to the fenced register that were refused
	Plain      Plain                 `json:"plain"`
	Longest    Gap                   `json:"longest_unavailable"`
	Waits      Waits                 `json:"waits"`
	Violations map[check.Promise]int `json:"violations"`
	Waived     map[check.Promise]int `json:"not_promised"` // violations that the store does not promise to prevent

	// Unchecked maps a check that had nothing to look at to the reason.
	Unchecked map[check.Promise]string `json:"not_checked,omitempty"`

	Found   []check.Violation `json:"found,omitempty"`              // the first violations of each check
	Excused []check.Violation `json:"found_not_promised,omitempty"` // the same for waived violations
	Spared  []plan.Nemesis    `json:"servers_spared,omitempty"`     // server faults that were not done, because the servers belong to the user
	Invalid string            `json:"invalid,omitempty"`
	History string            `json:"history,omitempty"` // the folder, if it stays
}

// A Nemesis counts the faults of a kind, the faults that came while the victim was at work,
// and the events after the faults.
type Nemesis struct {
	Name   string `json:"name"`
	Faults int    `json:"faults"`
	Hits   int    `json:"hits"`
	Tally
}

// Plain counts what happened to the registers without a fence.
type Plain struct {
	Writes int `json:"writes"`
	Stale  int `json:"stale"` // that a fence would have refused
	Lost   int `json:"lost"`  // updates that a different write has undone
}

// A Gap is a time in which a key had waiters, and nobody could acquire the key.
type Gap struct {
	Key     string  `json:"key"`
	Seconds float64 `json:"seconds"`
}

// Waits is the total time that waiters waited for locks.
type Waits struct {
	Seconds float64 `json:"seconds"`
	Judged  float64 `json:"judged_seconds"` // without any possible excuse
}

func (s *scene) report() *Report {
	r := &Report{
		Store: s.target.name, Seed: s.Seed, Command: s.again(), Seconds: shown.Seconds(time.Duration(1+s.extra) * s.Length), More: s.extended, TTL: shown.Seconds(s.TTL),
		Build: build.Version(), Server: s.target.engine.version,
		Workers: s.Workers, Clients: s.Clients, Keys: s.Keys,
		Kinds: s.kinds, Violations: make(map[check.Promise]int), Waived: make(map[check.Promise]int), History: s.dir,
		Spared: s.target.spared(), Before: newTally(),
	}
	if s.cut > 0 {
		r.Seconds, r.Ended = s.cut.Round(time.Second).Seconds(), errFull.Error()
	}
	for _, n := range s.Nemeses {
		r.Nemeses = append(r.Nemeses, Nemesis{Name: string(n), Tally: newTally()})
	}
	for _, p := range check.Promises() {
		r.Violations[p] = 0
	}
	return r
}

// ErrUnproved reports that a run has found no violation, and has proved nothing either.
var ErrUnproved = errors.New("nothing is proved")

// ErrUngranted reports that a run has proved nothing and has not seen a single grant. A
// store that grants nothing is broken, so the slowness of a machine is no excuse.
var ErrUngranted = errors.New("nothing was granted")

// Err reports violations; nil means that the promises were tested, and kept. If the run has
// tested too little, Err returns ErrUnproved or ErrUngranted.
func (r *Report) Err() error {
	n := 0
	for _, of := range r.Violations {
		n += of
	}
	switch {
	case n > 0:
		return fmt.Errorf("promises were broken %d times: see the history in %s", n, r.History)
	case r.Invalid != "" && r.Grants == 0:
		return fmt.Errorf("%w: %s", ErrUngranted, r.Invalid)
	case r.Invalid != "":
		return fmt.Errorf("%w: %s", ErrUnproved, r.Invalid)
	}
	return nil
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s, %d workers of %d goroutines, %d keys, TTL %gs, %gs: %s\n", r.Store, r.Workers, r.Clients, r.Keys, r.TTL, r.Seconds, plan.List(r.Kinds))
	if r.Ended != "" {
		fmt.Fprintf(out, "ended after %gs: %s\n", r.Seconds, r.Ended)
	}
	if r.More != "" {
		fmt.Fprintf(out, "extended to %gs: %s\n", r.Seconds, r.More)
	}
	fmt.Fprintf(out, "faults: %s\n", r.faults())
	if len(r.Spared) > 0 {
		fmt.Fprintf(out, "servers: not harmed, for they are yours; what --start has started could meet with %s\n", plan.List(r.Spared))
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range r.table() {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nAccesses that came too late, and that the fence has refused: %d. Without a fence, %d of %d\nwrites were stale, and %d updates were lost.\n",
		r.Refused, r.Plain.Stale, r.Plain.Writes, r.Plain.Lost)
	if len(r.Waived) > 0 {
		fmt.Fprintln(out, "Numbers in brackets are of what this store does not promise in the face of these faults.")
	}
	for _, line := range r.unchecked() {
		fmt.Fprintln(out, line)
	}
	for _, line := range r.told() {
		fmt.Fprintln(out, line)
	}
	_, err := fmt.Fprintf(out, "%s\nThe same operations and faults again:\n  %s\n", r.of(), r.Command)
	return err
}

// of names the programs of the report.
func (r *Report) of() string {
	if r.Server == "" {
		return "holdfast " + r.Build
	}
	return "holdfast " + r.Build + ", " + r.Server
}

// told returns the first violations of each check, as text.
func (r *Report) told() (lines []string) {
	for _, p := range check.Promises() {
		n := 0
		for _, v := range r.Found {
			if v.Check != p {
				continue
			}
			if n++; n <= mostTold {
				lines = append(lines, fmt.Sprintf("%s: %s: %s", p, v.Key, v.Text))
			}
		}
		if n > mostTold {
			lines = append(lines, fmt.Sprintf("%s: and %d more", p, r.Violations[p]-mostTold))
		}
	}
	return lines
}

// unchecked reports how much waiting progress could judge. It also lists the checks that
// had nothing to look at, with reasons.
func (r *Report) unchecked() (lines []string) {
	if r.Waits.Seconds > 0 {
		lines = append(lines, fmt.Sprintf("progress judged %.1fs of %.1fs of waiting; faults or a busy machine may explain the rest.", r.Waits.Judged, r.Waits.Seconds))
	}
	for _, p := range check.Promises() {
		if why := r.Unchecked[p]; why != "" {
			lines = append(lines, fmt.Sprintf("%s was not checked: %s.", p, why))
		}
	}
	return lines
}

func (r *Report) faults() string {
	var all, missing []string
	for _, n := range r.Nemeses {
		switch {
		case n.Faults > 0 && n.Hits == 0:
			all = append(all, fmt.Sprintf("%d %s (which met nobody at work)", n.Faults, n.Name))
		case n.Faults > 0:
			all = append(all, fmt.Sprintf("%d %s", n.Faults, n.Name))
		default:
			missing = append(missing, n.Name)
		}
	}
	text := strings.Join(all, ", ")
	if len(all) == 0 {
		text = "none"
	}
	if len(missing) > 0 {
		text += "; not done: " + strings.Join(missing, ", ")
	}
	return text
}
