//go:build unix

package peers

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// BenchmarkRedlockUncontended has one goroutine on five servers, of which one is
// stopped after a while and answers no more. Beside redsync, which does not
// wait for slow servers as it is set up here.
func BenchmarkRedlockUncontended(b *testing.B) {
	both := []side{sides[0], {name: "redsync/rueidis", open: openRedsyncRueidis}}
	masters := servers.StartMasters(b, 5)
	var addrs []string
	for _, m := range masters {
		addrs = append(addrs, m.Addr())
	}
	<-time.After(ttl + time.Second) // Holdfast leaves out servers that may have restarted
	libs := openAll(b, both, addrs...)
	for i, lib := range libs { // clients change their ways once many have used them
		if _, err := crowd(lib, func(g int) string { return fmt.Sprint("many", i, g) }, 64, 100*time.Millisecond); err != nil {
			b.Fatal(err)
		}
	}
	healthy := redlocks(b, libs)
	masters[2].Pause()
	stopped := redlocks(b, libs)
	masters[2].Resume()
	t := newTable(both, "p50-us", "p99-us", "mean-us", "stopped-p50-us", "stopped-p99-us", "stopped-mean-us", "stopped/healthy")
	for i := range both {
		h, s := healthy[i], stopped[i]
		t.add(micros(quantile(h, 0.5)), micros(quantile(h, 0.99)), micros(mean(h)),
			micros(quantile(s, 0.5)), micros(quantile(s, 0.99)), micros(mean(s)),
			float64(mean(s))/float64(mean(h)))
	}
	t.log(b)
	t.report(b, "p50-us", "stopped/healthy")
	b.ReportMetric(t.least("p50-us"), "p50/peer")
	b.ReportMetric(0, "ns/op")
}

// redlocks times the uncontended locks of each, for a while in turn.
func redlocks(b *testing.B, libs []*library) [][]time.Duration {
	const rounds, each = 20, 150 * time.Millisecond
	spent := make([][]time.Duration, len(libs))
	for range rounds {
		for i, lib := range libs {
			for end := time.Now().Add(each); time.Now().Before(end); {
				spent[i] = append(spent[i], cycle(b, lib, fmt.Sprint("alone", i)))
			}
		}
	}
	return spent
}
