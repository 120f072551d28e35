//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkRun tells what holdfast adds to the shortest of commands, by medians
// and with the binary that users have:
//
//	go test -run='^$' -bench=Run ./cmd/holdfast
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	binary := filepath.Join(dir, "holdfast")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.Setenv("HOLDFAST_STORE", "file://"+dir+"/locks")
	duration := func(name string, args ...string) time.Duration {
		start := time.Now()
		cmd := exec.Command(name, args...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	var bare, locked []time.Duration
	for b.Loop() { // by turns, so that what else the machine does falls on both
		bare = append(bare, duration("true"))
		locked = append(locked, duration(binary, "run", "key", "--", "true"))
	}
	median := func(ds []time.Duration) float64 {
		slices.Sort(ds)
		return ds[len(ds)/2].Seconds() * 1000
	}
	b.ReportMetric(median(bare), "true-ms")
	b.ReportMetric(median(locked), "locked-ms")
	b.ReportMetric(median(locked)-median(bare), "added-ms")
}
