package memcachelock

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
)

// BenchmarkUncontended compares a lock that nobody else wants with the least
// that could be one, "add" and "delete", by turns on one server, and reports the
// medians and their ratio.
func BenchmarkUncontended(b *testing.B) {
	s := newStore(b, nil, shared)
	locks := must.Get(holdfast.New(s, nil))
	defer locks.Close()
	lock := func() error {
		l, err := locks.Lock(b.Context(), "alone")
		if err != nil {
			return err
		}
		return l.Unlock()
	}
	c, err := s.servers[0].connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	bare := func() error {
		for _, command := range []string{"add bare 0 15 16\r\n0123456789abcdef\r\n", "delete bare\r\n"} {
			if _, err := c.Write([]byte(command)); err != nil {
				return err
			}
			if line, err := c.line(); err != nil || line != "STORED" && line != "DELETED" {
				return fmt.Errorf("%q: %q, %w", command, line, err)
			}
		}
		return nil
	}
	sides := []func() error{lock, bare}
	const rounds, each = 400, 50
	spent := make([][]time.Duration, len(sides))
	for b.Loop() {
		for round := range rounds {
			i := round % len(sides)
			for range each {
				start := time.Now()
				if err := sides[i](); err != nil {
					b.Fatal(err)
				}
				spent[i] = append(spent[i], time.Since(start))
			}
		}
	}
	median := func(ds []time.Duration) float64 {
		slices.Sort(ds)
		return float64(ds[len(ds)/2])
	}
	b.ReportMetric(median(spent[0]), "lock-ns")
	b.ReportMetric(median(spent[1]), "add-delete-ns")
	b.ReportMetric(median(spent[0])/median(spent[1]), "ratio")
	b.ReportMetric(0, "ns/op")
}
