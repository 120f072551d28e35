package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0":         thousands(0),
		"999":       thousands(999.4),
		"1,000":     thousands(999.5),
		"-12,345":   thousands(-12345),
		"1,234,567": thousands(1234567),
		"250 ns":    duration(250),
		"1.50 µs":   duration(1500),
		"12.3 ms":   duration(12345 * time.Microsecond),
		"123 s":     duration(123 * time.Second),
		"0.00885":   known(0.008853, 3),
		"127":       known(127.4, 3),
		"–":         known(math.NaN(), 3),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTable has three sides: the second is twice as fast and unfair, and the third so
// slow that nobody can tell, with locks that end after their round.
func TestTable(t *testing.T) {
	s := scale{rounds: 2, each: time.Second}
	b := bench{name: "one-key", processes: 1, goroutines: 2, times: "wait"}
	ours := result{side: stores.Side{Name: "ours"}}
	theirs := result{side: stores.Side{Name: "theirs"}}
	slow := result{side: stores.Side{Name: "slow"}}
	nothing := result{side: stores.Side{Name: "nothing", Empty: true}}
	for range s.rounds {
		ours.add(b, worker.Tally{Counts: []int{50, 50}, Had: 100, Times: []time.Duration{time.Millisecond}}, usage{cost: 300}, s)
		theirs.add(b, worker.Tally{Counts: []int{190, 10}, Had: 200, Times: []time.Duration{time.Second}, Lost: 1}, usage{cost: 200}, s)
		slow.add(b, worker.Tally{Counts: []int{1, 3}, Had: 6, Times: []time.Duration{time.Second}}, usage{cost: 12}, s)
		nothing.add(b, worker.Tally{Counts: []int{500, 500}, Had: 1000, Times: []time.Duration{time.Second}, Twice: 99}, usage{cost: 0}, s)
	}
	var out bytes.Buffer
	printResults(&out, b, stores.Store{Cost: "commands"}, s, []result{ours, theirs, slow, nothing})
	for _, want := range []string{
		"One key: 2 goroutines in one process.",
		"|  | locks/s | quartiles of the rounds | × Holdfast | wait p50 | p99 | longest | min/max | commands/lock |",
		"| ours | 100 | 100 – 100 | 1.00 | 1.00 ms | 1.00 ms | 1.00 ms | 1.0 | 3.00 |",
		"| theirs | 200 | 200 – 200 | 2.00 | 1.00 s | 1.00 s | 1.00 s | 0.053 | 1.00 |",
		"| slow | 4 | 4 – 4 | 0.0400 | 1.00 s | 1.00 s | 1.00 s | – | 2.00 |",
		"theirs: of 400 locks, 2 could not be released.",
	} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "nothing: of") {
		t.Errorf("what does not lock is blamed for it:\n%s", out.String())
	}
}
