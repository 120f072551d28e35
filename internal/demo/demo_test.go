package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/holdfast-go/holdfast/filelock"
)

// roles are what the test binary can be besides a test: above all, the program
// that servers are made of.
var roles = map[string]func() error{
	"serve": func() error { return Serve(context.Background(), os.Stdin, os.Stdout) },
}

func TestMain(m *testing.M) {
	if len(os.Args) < 2 || roles[os.Args[1]] == nil {
		os.Exit(m.Run())
	}
	if err := roles[os.Args[1]](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func self(t testing.TB) []string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{program, "serve"}
}

// small is a sale that a slow machine plays in a few seconds. It fails the test
// if it leaves anything on disk.
func small(t *testing.T) Config {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)                                   // unix
	t.Setenv("TMP", folder)                                      // windows
	t.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each server takes a second to end
	t.Cleanup(func() {
		left, err := os.ReadDir(folder)
		if err != nil || len(left) > 0 {
			t.Errorf("the sale has left %v (%v)", left, err)
		}
	})
	c := Default()
	c.Servers, c.Stock, c.Buyers = 3, 40, 120
	c.Command = self(t)
	c.Stderr = t.Output()
	return c
}

func TestSale(t *testing.T) {
	c := small(t)
	var told []string
	c.Progress = func(line string) { told = append(told, line) }
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if len(r.Rounds) != 3 || len(r.Scenes) != 0 {
		t.Fatalf("played %d rounds and %d scenes, want 3 and 0", len(r.Rounds), len(r.Scenes))
	}
	for i, guard := range []Guard{NoLock, Mutex, Holdfast} {
		n := r.Rounds[i]
		t.Log(n.Verdict)
		if n.Guard != guard || n.Errors != 0 || n.Sold+n.Refused != c.Buyers || n.Oversold != n.Sold-c.Stock {
			t.Errorf("round %d does not add up: %+v", i+1, n)
		}
		if n.Seconds <= 0 || n.PerSecond <= 0 || n.P50 <= 0 || n.P99 < n.P50 {
			t.Errorf("round %d was not measured: %+v", i+1, n)
		}
		if guard == Holdfast && (n.Sold != c.Stock || n.Left != 0) {
			t.Errorf("%s sold %d and left %d, want all %d and none", guard, n.Sold, n.Left, c.Stock)
		}
		if guard != Holdfast && n.Oversold < 1 {
			t.Errorf("%s did not oversell: the sale shows nothing", guard)
		}
		if !strings.Contains(strings.Join(told, "\n"), string(guard)+": ") {
			t.Errorf("no progress of %s was told, only %q", guard, told)
		}
	}
}

func TestInterrupt(t *testing.T) {
	c := small(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("somebody pressed Ctrl-C")
	c.Progress = func(line string) {
		if strings.HasPrefix(line, string(Mutex)) && strings.Contains(line, "served") {
			cancel(stop)
		}
	}
	if r, err := Run(ctx, c); err != stop {
		t.Errorf("an interrupted sale returned %v and error %v, want %v", r, err, stop)
	}
}

func TestStoreThatCannotServe(t *testing.T) {
	for store, want := range map[string]string{
		"nosuch://here":      `"nosuch"`,
		"mem://":             "memory of one process",
		"file:///tmp?no=way": "no",
		"locks":              "scheme",
	} {
		t.Run(store, func(t *testing.T) {
			c := small(t)
			c.Store = store
			c.Progress = func(line string) { t.Errorf("the sale began: %s", line) }
			if _, err := Run(t.Context(), c); !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want ErrStore with %q", err, want)
			}
		})
	}
}

func TestProgramThatIsNoServer(t *testing.T) {
	c := small(t)
	c.Command = []string{c.Command[0], "-test.run=^$"}
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "server 1") {
		t.Errorf("error %v, want one that names the server", err)
	}
}

// TestServerEndsWithItsInput: that is all a server sees of a parent's death.
func TestServerEndsWithItsInput(t *testing.T) {
	c := small(t)
	servers, err := c.startFleet(t.Context(), 1, job{Guard: NoLock})
	if err != nil {
		t.Fatal(err)
	}
	if err := servers.stop(); err != nil {
		t.Errorf("the server had to be killed, or failed: %v", err)
	}
	client := http.Client{Timeout: 10 * time.Second}
	if reply, err := client.Get(servers[0].url); err == nil {
		reply.Body.Close()
		t.Error("the server has ended and still answers")
	}
}
