package verify

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/build"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

const (
	mostShown = 20 // violations of each check, in JSON and on the page
	mostTold  = 5  // of them, in the report for people
)

// A Report is what came of a run.
type Report struct {
	Store   string  `json:"store"`
	Seed    uint64  `json:"seed,string"`
	Command string  `json:"command"`          // does the same operations and faults again
	Build   string  `json:"build"`            // version and commit of this program
	Server  string  `json:"server,omitempty"` // what was started, and its version
	Seconds float64 `json:"seconds"`
	Ended   string  `json:"ended_early,omitempty"` // why it was no longer
	TTL     float64 `json:"ttl_seconds"`
	Workers int     `json:"workers"`
	Clients int     `json:"clients"`
	Keys    int     `json:"keys"`

	Kinds      []plan.Kind           `json:"kinds"`
	Nemeses    []Nemesis             `json:"nemeses"`
	Before     Tally                 `json:"before_any_fault"`
	Operations int                   `json:"operations"`
	Grants     int                   `json:"grants"`
	Effects    int                   `json:"effects"` // that began, each to happen once
	Losses     int                   `json:"losses"`  // locks that were lost, and told so
	Refused    int                   `json:"refused"` // accesses to the fenced register that were refused
	Plain      Plain                 `json:"plain"`
	Longest    Gap                   `json:"longest_unavailable"`
	Waits      Waits                 `json:"waits"`
	Violations map[check.Promise]int `json:"violations"`
	Waived     map[check.Promise]int `json:"not_promised"` // what the store does not promise to stand, and has not

	// Unchecked says why a check had nothing to look at.
	Unchecked map[check.Promise]string `json:"not_checked,omitempty"`

	Found   []check.Violation `json:"found,omitempty"`              // the first violations of each check
	Excused []check.Violation `json:"found_not_promised,omitempty"` // the same of those that are waived
	Spared  []plan.Nemesis    `json:"servers_spared,omitempty"`     // faults of servers that were not done, for they are the user's
	Invalid string            `json:"invalid,omitempty"`
	History string            `json:"history,omitempty"` // the folder, if it stays
}

// A Nemesis is how often a fault was done, how often while its victim was at work,
// and what happened afterwards.
type Nemesis struct {
	Name   string `json:"name"`
	Faults int    `json:"faults"`
	Hits   int    `json:"hits"`
	Tally
}

// Plain is what happened to the registers without a fence.
type Plain struct {
	Writes int `json:"writes"`
	Stale  int `json:"stale"` // that a fence would have refused
	Lost   int `json:"lost"`  // updates that another write has undone
}

// A Gap is how long nobody could have a key though somebody waited for it.
type Gap struct {
	Key     string  `json:"key"`
	Seconds float64 `json:"seconds"`
}

// Waits are how long somebody has waited for locks, all together.
type Waits struct {
	Seconds float64 `json:"seconds"`
	Judged  float64 `json:"judged_seconds"` // without anything that could excuse it
}

func (s *scene) report() *Report {
	r := &Report{
		Store: s.target.name, Seed: s.Seed, Command: s.again(), Seconds: s.Length.Seconds(), TTL: s.TTL.Seconds(),
		Build: build.Version(), Server: s.target.engine.version,
		Workers: s.Workers, Clients: s.Clients, Keys: s.Keys,
		Kinds: s.kinds, Violations: make(map[check.Promise]int), Waived: make(map[check.Promise]int), History: s.dir,
		Spared: s.target.spared(),
	}
	if s.cut > 0 {
		r.Seconds, r.Ended = s.cut.Round(time.Second).Seconds(), errFull.Error()
	}
	for _, n := range s.Nemeses {
		r.Nemeses = append(r.Nemeses, Nemesis{Name: string(n)})
	}
	for _, p := range check.Promises() {
		r.Violations[p] = 0
	}
	return r
}

// ErrUnproved says that a run has found nothing, and proved nothing either.
var ErrUnproved = errors.New("nothing is proved")

// Err says what was wrong; nil means that all promises were kept, and put to the
// proof. If they were not put to it, it is ErrUnproved.
func (r *Report) Err() error {
	n := 0
	for _, of := range r.Violations {
		n += of
	}
	switch {
	case n > 0:
		return fmt.Errorf("promises were broken %d times: see the history in %s", n, r.History)
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

// of says which programs the report is of.
func (r *Report) of() string {
	if r.Server == "" {
		return "holdfast " + r.Build
	}
	return "holdfast " + r.Build + ", " + r.Server
}

// told are the first violations of each check, in words.
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

// unchecked says how much progress could judge, and which checks had nothing to look at,
// and why.
func (r *Report) unchecked() (lines []string) {
	if r.Waits.Seconds > 0 {
		lines = append(lines, fmt.Sprintf("progress has judged %.1fs of the %.1fs for which somebody waited: an excuse covers the rest.", r.Waits.Judged, r.Waits.Seconds))
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
