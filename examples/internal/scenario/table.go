package scenario

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/dialect"
)

// Table plays each guard and prints a row. The function prepare clears the tables before
// each guard. The function wrong counts the mistakes after each guard.
func (p *Play) Table(ctx context.Context, d *Database, guards []string, mistake string, prepare func(context.Context) error, wrong func(ctx context.Context, guard string, r Result) (int, error)) error {
	var version string
	if err := d.QueryRowContext(ctx, `SELECT version()`).Scan(&version); err != nil {
		return err
	}
	if d.Fences.Dialect == dialect.Postgres {
		version = strings.Join(strings.Fields(version)[:2], " ")
	}
	fmt.Printf("%s, %d CPUs, %d processes of %d goroutines, %d requests each, %v of work\n\n",
		version, runtime.NumCPU(), p.Processes, p.Goroutines, p.Requests, p.Work)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	row(w, "guard", mistake, "done", "refused", "retries", "per second", "p50", "p99")
	for _, guard := range guards {
		if err := prepare(ctx); err != nil {
			return err
		}
		r, err := p.Run(ctx, guard)
		if err != nil {
			return fmt.Errorf("%s: %w", guard, err)
		}
		n, err := wrong(ctx, guard, r)
		if err != nil {
			return err
		}
		perSecond := float64(len(r.Times)) / r.Elapsed.Seconds()
		row(w, guard, n, r.Done, r.Refused, r.Retries, fmt.Sprintf("%.0f", perSecond), r.share(50), r.share(99))
	}
	return w.Flush()
}

func row(w io.Writer, cells ...any) {
	for _, cell := range cells {
		fmt.Fprintf(w, "%v\t", cell)
	}
	fmt.Fprintln(w)
}

// share returns the time within which percent of the requests were answered.
func (r Result) share(percent int) time.Duration {
	return r.Times[(len(r.Times)-1)*percent/100].Round(10 * time.Microsecond)
}
