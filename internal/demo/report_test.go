package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func report() *Report {
	return &Report{
		Servers: 4, Stock: 200, Buyers: 500, Store: "file:///locks",
		Rounds: []Round{
			{Guard: NoLock, Sold: 500, Oversold: 300, PerSecond: 1666.7, P50: 243.54, P99: 1287.4},
			{Guard: Holdfast, Sold: 200, Refused: 300, PerSecond: 598, P50: 0.14, P99: 834.1, Verdict: "All is well."},
		},
		Scenes: []Scene{{
			Fenced: true, TTL: 1, Stale: 1<<53 + 1, Token: 1<<53 + 2, Refused: true, Sold: 1,
			Moments: []Moment{
				{Seconds: 0.0021, Server: "server 1", PID: 41, Token: 7, Text: "holds the lock"},
				{Seconds: 10, Server: "server 2", PID: 4242, Text: "waits"},
			},
			Verdict: "Refused.",
		}},
	}
}

func TestPrint(t *testing.T) {
	want := `
Servers: 4. Stock: 200. Buyers: 500. Lock store: file:///locks.

              sold  oversold  refused  errors  requests/s      p50      p99
  no lock      500       300        0       0        1667  243.5ms  1.2874s
  Holdfast     200         0      300       0         598    100µs  834.1ms


All is well.

A server is frozen for longer than its TTL of 1s. With the fence: the shop refuses tokens smaller than it has seen.

  time  server    pid   token  what happens
 0.002  server 1  41    7      holds the lock
10.000  server 2  4242  -      waits

Refused.
`
	var b strings.Builder
	if err := report().Print(&b); err != nil {
		t.Fatal(err)
	}
	if got := "\n" + b.String(); got != want {
		t.Errorf("printed %s\nwant %s", got, want)
	}
}

// TestJSON: tokens are strings, because readers that take numbers for floats
// would not tell these two apart.
func TestJSON(t *testing.T) {
	text, err := json.Marshal(report())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"rounds":[{"guard":"no lock","sold":500,"oversold":300,`, `"requests_per_second":598,"p50_ms":0.14,`,
		`"stale_token":"9007199254740993","token":"9007199254740994","refused":true`, `"timeline":[{"seconds":0.0021,`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestErr(t *testing.T) {
	if err := report().Err(); err != nil {
		t.Errorf("all went well, and yet: %v", err)
	}
	for name, spoil := range map[string]func(*Report){
		"oversold":    func(r *Report) { r.Rounds[1].Sold++ },
		"undersold":   func(r *Report) { r.Rounds[1].Sold-- },
		"errors":      func(r *Report) { r.Rounds[1].Errors++ },
		"not refused": func(r *Report) { r.Scenes[0].Refused = false },
		"sold twice":  func(r *Report) { r.Scenes[0].Sold++ },
	} {
		r := report()
		spoil(r)
		if r.Err() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	few := report()
	few.Buyers, few.Rounds[1].Sold = 150, 150
	if err := few.Err(); err != nil {
		t.Errorf("150 buyers bought 150 items, and yet: %v", err)
	}
}

func TestVerdict(t *testing.T) {
	for want, r := range map[string]Round{
		"no lock: sold 12 of 10. Servers write over":         {Guard: NoLock, Sold: 12, Oversold: 2},
		"no lock: sold 10 of 10, by luck":                    {Guard: NoLock, Sold: 10},
		"sync.Mutex: sold 11 of 10. A mutex holds within":    {Guard: Mutex, Sold: 11, Oversold: 1},
		"sync.Mutex: sold 10 of 10, by luck":                 {Guard: Mutex, Sold: 10},
		"Holdfast: sold 10 of 10, each item once.":           {Guard: Holdfast, Sold: 10},
		"Holdfast: sold 11 of 10, which must not happen":     {Guard: Holdfast, Sold: 11, Oversold: 1},
		"Requests that failed: 3, such as: the bank is gone": {Guard: Holdfast, Sold: 9, Errors: 3, Error: "the bank is gone\n"},
	} {
		s := &stage{Config: Config{Servers: 4, Stock: 10, Buyers: 20}}
		if got := s.verdict(r); !strings.Contains(got, want) {
			t.Errorf("verdict %q, want %q in it", got, want)
		}
	}
	alone := &stage{Config: Config{Servers: 1, Stock: 10, Buyers: 20}}
	if got := alone.verdict(Round{Guard: Mutex, Sold: 10}); !strings.Contains(got, "single process") {
		t.Errorf("verdict %q for a mutex in the only process", got)
	}
	few := &stage{Config: Config{Servers: 4, Stock: 10, Buyers: 5}}
	if got := few.verdict(Round{Guard: NoLock, Sold: 5}); !strings.Contains(got, "too few buyers") {
		t.Errorf("verdict %q for five buyers of ten items", got)
	}
}

func TestQuantile(t *testing.T) {
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(i+1)*time.Millisecond)
	}
	for _, q := range []struct {
		n, percent int
		want       float64
	}{{200, 50, 100}, {200, 99, 198}, {1, 50, 1}, {1, 99, 1}, {3, 50, 2}, {100, 99, 99}} {
		if got := quantile(times[:q.n], q.percent); got != q.want {
			t.Errorf("p%d of %d is %g, want %g", q.percent, q.n, got, q.want)
		}
	}
}
