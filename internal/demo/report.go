package demo

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Report is the result of a sale.
type Report struct {
	Servers int     `json:"servers"`
	Stock   int     `json:"stock"`
	Buyers  int     `json:"buyers"`
	Store   string  `json:"store"`
	Rounds  []Round `json:"rounds"`
	Scenes  []Scene `json:"scenes,omitempty"`
}

// A Round is the sale under one guard.
type Round struct {
	Guard     Guard   `json:"guard"`
	Sold      int     `json:"sold"`     // orders in the shop
	Oversold  int     `json:"oversold"` // sold beyond the stock
	Left      int     `json:"left"`     // the stock that the shop shows
	Refused   int     `json:"refused"`  // buyers who were told that the item is sold out
	Errors    int     `json:"errors"`
	Error     string  `json:"error,omitempty"` // one of the errors
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"requests_per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Verdict   string  `json:"verdict"`
}

func (s *stage) report() *Report {
	shown := "files in the folder of the sale"
	if u, err := url.Parse(s.Store); err == nil && s.Store != "" {
		shown = driver.Redact(u)
	}
	return &Report{Servers: s.Servers, Stock: s.Stock, Buyers: s.Buyers, Store: shown}
}

// verdict sums up the result of a round in a sentence.
func (s *stage) verdict(r Round) string {
	told := fmt.Sprintf("%s: sold %d of %d", r.Guard, r.Sold, s.Stock)
	switch {
	case r.Errors > 0:
		return fmt.Sprintf("%s. Requests that failed: %d, such as: %s", told, r.Errors, strings.TrimSpace(r.Error))
	case r.Oversold == 0 && s.Buyers <= s.Stock:
		return told + ". There were too few buyers to oversell."
	case r.Oversold == 0 && r.Guard == NoLock:
		return told + ", by luck."
	case r.Oversold == 0 && r.Guard == Mutex && s.Servers == 1:
		return told + ". Within a single process a mutex is enough."
	case r.Oversold == 0 && r.Guard == Mutex:
		return told + ", by luck. A mutex holds within its process only."
	case r.Oversold == 0:
		return told + ", each item once."
	case r.Guard == NoLock:
		return told + ". Servers write over what others have written since they looked."
	case r.Guard == Mutex:
		return told + fmt.Sprintf(". A mutex holds within its process, and there are %d of them.", s.Servers)
	}
	return told + ", which must not happen."
}

// Err returns an error if the round with Holdfast or the scene with the fence went wrong.
// Failures of the remaining rounds and scenes are no error.
func (r *Report) Err() error {
	var errs []error
	for _, round := range r.Rounds {
		want := min(r.Stock, r.Buyers)
		if round.Guard == Holdfast && (round.Sold != want || round.Errors > 0) {
			errs = append(errs, fmt.Errorf("%s sold %d with %d errors, want %d without errors", round.Guard, round.Sold, round.Errors, want))
		}
	}
	for _, scene := range r.Scenes {
		if scene.Fenced && (scene.Sold != 1 || !scene.Refused) {
			errs = append(errs, fmt.Errorf("the fence let token %d pass after token %d", scene.Stale, scene.Token))
		}
	}
	return errors.Join(errs...)
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "Servers: %d. Stock: %d. Buyers: %d. Lock store: %s.\n\n", r.Servers, r.Stock, r.Buyers, r.Store)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%-10s\tsold\toversold\trefused\terrors\trequests/s\tp50\tp99\t\n", "")
	for _, n := range r.Rounds {
		fmt.Fprintf(w, "%-10s\t%d\t%d\t%d\t%d\t%.0f\t%s\t%s\t\n",
			n.Guard, n.Sold, n.Oversold, n.Refused, n.Errors, n.PerSecond, millis(n.P50), millis(n.P99))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, n := range r.Rounds {
		fmt.Fprintln(out, n.Verdict)
	}
	for i := range r.Scenes {
		if err := r.Scenes[i].print(out); err != nil {
			return err
		}
	}
	return nil
}

func millis(ms float64) string {
	return time.Duration(ms * float64(time.Millisecond)).Round(100 * time.Microsecond).String()
}
