package verify

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/page"
)

const (
	mostBars  = 40_000 // that a browser draws at once
	mostViews = 3      // of Porcupine
)

// writePage writes the page of a run to the file that the user has named.
func (s *scene) writePage(r *Report, run *check.Run) (err error) {
	if s.HTML == "" {
		return nil
	}
	file, err := os.Create(s.HTML)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return r.page(run).Write(file)
}

// page builds the page of a run.
func (r *Report) page(run *check.Run) *page.Page {
	p := &page.Page{
		Program: "holdfast verify", Title: r.Store, Table: r.table(), Unchecked: r.unchecked(),
		Facts: []page.Fact{
			{Name: "workers", Value: fmt.Sprintf("%d of %d goroutines", r.Workers, r.Clients)},
			{Name: "TTL", Value: fmt.Sprintf("%gs", r.TTL)},
			{Name: "kinds", Value: plan.List(r.Kinds)},
			{Name: "faults", Value: r.faults()},
			{Name: "operations", Value: strconv.Itoa(r.Operations)},
			{Name: "grants", Value: strconv.Itoa(r.Grants)},
			{Name: "losses", Value: strconv.Itoa(r.Losses)},
			{Name: "stale writes without a fence", Value: fmt.Sprintf("%d of %d", r.Plain.Stale, r.Plain.Writes)},
			{Name: "programs", Value: r.of()},
			{Name: "seed", Value: strconv.FormatUint(r.Seed, 10)},
		},
		Keys: []string{}, Holds: []page.Hold{}, Faults: []page.Fault{}, Violations: []page.Violation{}, // no nulls
	}
	if len(r.Spared) > 0 {
		p.Facts = append(p.Facts, page.Fact{Name: "servers", Value: "not harmed"})
	}
	if err := r.Err(); err != nil {
		p.Verdict = err.Error()
	}
	d := &drawing{Page: p, keys: make(map[string]int), began: began(run)}
	d.holds(run, slices.Concat(r.Found, r.Excused))
	d.faults(run)
	d.violations(r.Found, false)
	d.violations(r.Excused, true)
	return p
}

// began is when the first lock was requested.
func began(run *check.Run) int64 {
	first := int64(check.Never)
	for _, h := range run.Holds {
		first = min(first, h.Asked)
	}
	return first
}

// A drawing is a page under construction.
type drawing struct {
	*page.Page
	keys  map[string]int
	began int64
}

// ms converts a time to the milliseconds of the page.
func (d *drawing) ms(at int64) float64 { return float64((at-d.began)/1000) / 1000 }

// holds adds the granted locks, in order of time, up to the number that a browser can draw.
func (d *drawing) holds(run *check.Run, shown []check.Violation) {
	var granted []*check.Hold
	for _, h := range run.Holds {
		if h.Got != check.Never {
			granted = append(granted, h)
			end, _ := ended(h)
			d.End = max(d.End, d.ms(end))
		}
	}
	if all := len(granted); all > mostBars {
		granted = choose(granted, shown, run.Faults, mostBars)
		d.Note = fmt.Sprintf("Shown are %d of %d locks: those nearest to what was wrong, and to the faults.", mostBars, all)
	}
	slices.SortFunc(granted, func(a, b *check.Hold) int { return cmp.Compare(a.Got, b.Got) })
	for _, h := range granted {
		d.keys[h.Key] = -1
		d.Keys = append(d.Keys, lane(h.Key))
	}
	slices.Sort(d.Keys)
	d.Keys = slices.Compact(d.Keys)
	for key := range d.keys {
		d.keys[key], _ = slices.BinarySearch(d.Keys, lane(key))
	}
	for _, h := range granted {
		d.Holds = append(d.Holds, d.bar(h))
	}
}

// lane is where the locks of a key are drawn. Each effect has a separate key; the locks of
// effects share a lane.
func lane(key string) string {
	if name, _, once := strings.Cut(key, "/"); once {
		return name
	}
	return key
}

// ended returns the end of a lock, and the reason for the end.
func ended(h *check.Hold) (end int64, how string) {
	end, how = h.Freed, "unlocked"
	switch {
	case h.Lost != check.Never:
		end, how = h.Lost, "lost"
	case h.Freed == check.Never && h.Died != check.Never:
		end, how = h.Died, "its process ended"
	case h.Freed == check.Never:
		end, how = h.Held, "last seen"
	}
	return max(end, h.Got), how
}

// bar draws a lock.
func (d *drawing) bar(h *check.Hold) page.Hold {
	end, how := ended(h)
	bar := page.Hold{
		Key: d.keys[h.Key], Worker: h.Who.Worker, Who: h.Who.String(), Mode: h.Mode,
		Asked: d.ms(h.Asked), From: d.ms(h.Got), Until: d.ms(min(h.Until, end)), To: d.ms(end),
		End: how, Lost: how != "unlocked",
	}
	if h.Token > 0 {
		bar.Token = strconv.FormatUint(h.Token, 10)
	}
	return bar
}

func (d *drawing) faults(run *check.Run) {
	for _, f := range run.Faults {
		to := f.To
		if to == check.Never {
			to = f.From
		}
		d.Faults = append(d.Faults, page.Fault{Nemesis: f.Nemesis, Worker: f.Worker, From: d.ms(f.From), To: d.ms(to)})
	}
}

func (d *drawing) violations(found []check.Violation, waived bool) {
	for _, v := range found {
		key, known := d.keys[v.Key]
		if !known {
			key = -1
		}
		at := -1.0
		if v.At > 0 {
			at = d.ms(v.At)
		}
		d.Violations = append(d.Violations, page.Violation{Check: string(v.Check), Key: key, At: at, Text: v.Text, Waived: waived})
		if v.View != "" && len(d.Views) < mostViews {
			d.Views = append(d.Views, v.View)
		}
	}
}
