package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestScrape asks for /metrics as Prometheus does, until they say what is going on.
func TestScrape(t *testing.T) {
	t.Parallel()
	locks, metrics, err := observed(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	server := httptest.NewServer(metrics)
	defer server.Close()

	held, err := locks.Lock(t.Context(), "account/42")
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		waited <- locks.Do(t.Context(), "account/42", func(context.Context) error { return nil }, holdfast.Wait(time.Minute))
	}()
	scrape(t, server.URL, `holdfast_lock_held{.*holdfast_lock_name="account".*} 1`, `holdfast_lock_waiting{.*holdfast_lock_name="account".*} 1`)
	if err := held.Unlock(); err != nil {
		t.Error(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	scrape(t, server.URL,
		`holdfast_lock_held{.*} 0`,
		`holdfast_lock_waiting{.*} 0`,
		`holdfast_lock_wait_duration_seconds_count{.*holdfast_outcome="locked".*} 2`,
		`holdfast_lock_hold_duration_seconds_bucket{.*holdfast_outcome="unlocked".*le="\+Inf"} 2`,
	)
}

// TestRun watches the workers.
func TestRun(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- run(ctx, "mem://", listener, 8) }()
	scrape(t, "http://"+listener.Addr().String()+"/metrics", `holdfast_lock_hold_duration_seconds_count{.*} [1-9]\d`)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// scrape asks until the answer has all these lines.
func scrape(t *testing.T, url string, lines ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text := get(ctx, t, url)
		if strings.Contains(text, "account/") {
			t.Fatalf("there is a key in the metrics: %s", text)
		}
		missing := ""
		for _, line := range lines {
			if !regexp.MustCompile("(?m)^" + line).MatchString(text) {
				missing = line
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no line %s in %s", missing, text)
		}
	}
}

func get(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", response.Status, err)
	}
	return string(text)
}
