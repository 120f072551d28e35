//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkRun tells what holdfast adds to the shortest of commands, with the
// binary that users have:
//
//	go test -run='^$' -bench=Run ./ext/cmd/holdfast
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
	var bare, locked time.Duration
	for b.Loop() { // by turns, so that what else the machine does falls on both
		bare += duration("true")
		locked += duration(binary, "run", "key", "--", "true")
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(b.N) }
	b.ReportMetric(ms(bare), "true-ms")
	b.ReportMetric(ms(locked), "locked-ms")
	b.ReportMetric(ms(locked-bare), "added-ms")
}
