package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// A keyState is the answer of ls and show about a key. The JSON names are stable.
type keyState struct {
	Key     string  `json:"key"`
	Holders []claim `json:"holders"`
	Waiters []claim `json:"waiters"` // in the queue, the next waiter first
}

// A claim is a holder of a key or a waiter.
type claim struct {
	ID     string    `json:"id"` // for break
	Kind   string    `json:"kind"`
	Weight int64     `json:"weight,omitempty"` // of slots only
	Slots  int64     `json:"slots,omitempty"`
	Owner  string    `json:"owner"`
	Note   string    `json:"note"`
	Since  time.Time `json:"since"`
	Left   *float64  `json:"left_seconds"`    // until the lease ends unless renewed; null if unknown
	Fence  string    `json:"fence,omitempty"` // a decimal number too large for some readers of JSON
}

// state asks the store about a key.
func state(ctx context.Context, locks *holdfast.Locker, key string) (keyState, error) {
	s := keyState{Key: key, Holders: []claim{}, Waiters: []claim{}}
	holders, err := locks.Holders(ctx, key)
	for _, h := range holders {
		if h.Waiting {
			s.Waiters = append(s.Waiters, newClaim(h))
		} else {
			s.Holders = append(s.Holders, newClaim(h))
		}
	}
	return s, err
}

func newClaim(h holdfast.Holder) claim {
	c := claim{ID: h.ID, Owner: h.Owner, Note: h.Note, Since: h.Since.UTC().Truncate(time.Millisecond)}
	switch {
	case h.Weight == driver.MaxWeight:
		c.Kind = "exclusive"
	case driver.Claim{Weight: h.Weight, Limit: h.Limit}.Shared():
		c.Kind = "shared"
	case h.Limit == driver.MaxWeight:
		c.Kind = "upgrade"
	default:
		c.Kind, c.Weight, c.Slots = "slots", h.Weight, h.Limit
	}
	if h.Fence > 0 {
		c.Fence = strconv.FormatUint(h.Fence, 10)
	}
	if h.Left > 0 {
		left := shown.Seconds(h.Left)
		c.Left = &left
	}
	return c
}

// kind names the kind of lock for people.
func (c claim) kind() string {
	if c.Slots > 0 {
		return fmt.Sprintf("%d of %d slots", c.Weight, c.Slots)
	}
	return c.Kind
}

// String names the owner of the claim, as part of a sentence.
func (c claim) String() string {
	s := fmt.Sprintf("%s (id %s", cli.Clean(c.Owner), c.ID)
	if c.Fence != "" {
		s += ", token " + c.Fence
	}
	return s + ")"
}

// A format is the output format of ls and show: a table or JSON.
type format struct{ json, header bool }

func (f *format) register(cmd *cobra.Command, json string) {
	cmd.Flags().BoolVar(&f.json, "json", false, json)
	cmd.Flags().BoolVar(&f.header, "header", false, "name the columns in a pipe, too")
}

// check refuses flags that exclude each other.
func (f *format) check(cmd *cobra.Command) error {
	if f.json && f.header {
		return cli.Usage(cmd.CommandPath(), "--header and --json exclude each other")
	}
	return nil
}

// A table is rows of text for people or for pipes.
type table struct {
	people bool
	rows   [][]string
}

// newTable returns a table for a stream. People see the header; pipes get the header on
// request. In a pipe, FOR is a time and not a duration.
func (f *format) newTable(w io.Writer, header ...string) *table {
	t := &table{people: cli.Terminal(w)}
	if i := slices.Index(header, "FOR"); !t.people && i >= 0 {
		header[i] = "SINCE"
	}
	if t.people || f.header {
		t.rows = append(t.rows, header)
	}
	return t
}

func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = cli.Clean(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// since returns the age of a claim for people, and the start time for programs.
func (t *table) since(c claim) string {
	if t.people {
		return time.Since(c.Since).Round(time.Second).String()
	}
	return c.Since.Format(time.RFC3339Nano)
}

func (t *table) left(c claim) string {
	switch {
	case c.Left == nil:
		return ""
	case t.people:
		return time.Duration(*c.Left * float64(time.Second)).Round(100 * time.Millisecond).String()
	}
	return strconv.FormatFloat(*c.Left, 'f', -1, 64)
}

func (t *table) write(w io.Writer) error {
	if len(t.rows) == 1 && t.people {
		return nil // a header alone says nothing
	}
	tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	out := io.Writer(tabs)
	if !t.people {
		out = w
	}
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(out, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return tabs.Flush()
}

// sortKeys orders states by key.
func sortKeys(states []keyState) {
	slices.SortFunc(states, func(a, b keyState) int { return strings.Compare(a.Key, b.Key) })
}
