package servers

import (
	"errors"
	"os"
	"strings"
	"testing"
)

type run func() int

func (r run) Run() int { return r() }

func TestMainFunction(t *testing.T) {
	var r *Redis
	code := Main(run(func() int {
		r.Must("PING")
		return 3
	}), func(tb TB) { r = StartRedis(tb) })
	if code != 3 {
		t.Errorf("the exit code is %d, want that of the tests", code)
	}
	if _, err := r.Do("PING"); err == nil {
		t.Error("the server outlives the tests")
	}
	if _, err := os.Stat(r.dir); !os.IsNotExist(err) {
		t.Errorf("the folder of the server is left: %v", err)
	}
}

func TestMainSkips(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_ALL", "")
	code := Main(run(func() int {
		t.Error("the tests run without a server")
		return 1
	}), func(tb TB) { Installed(tb, "of-servers", "no-such-server") })
	if code != 0 {
		t.Errorf("the exit code is %d, want 0", code)
	}
}

func TestHost(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_ALL", "")
	h := &Host{}
	defer h.Close()
	if err := h.Try(func() { Installed(h, "of-servers", "no-such-server") }); !errors.Is(err, ErrMissing) {
		t.Errorf("a missing server: %v", err)
	}
	var r *Redis
	if err := h.Try(func() { r = StartRedis(h) }); err != nil {
		t.Fatal(err)
	}
	if err := h.Try(func() { r.Must("NONSENSE") }); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("a command that fails: %v", err)
	}
	h.Cleanup(func() { h.Fatalf("it does not end") })
	if err := h.Close(); err == nil || err.Error() != "it does not end" {
		t.Errorf("close: %v", err)
	}
	if _, err := r.Do("PING"); err == nil {
		t.Error("the server outlives its host")
	}
}

func TestMainWithoutServer(t *testing.T) {
	t.Setenv("HOLDFAST_REDIS", "no-such-server")
	defer func() {
		if seen, _ := recover().(string); !strings.Contains(seen, "no-such-server") {
			t.Errorf("panicked with %q", seen)
		}
	}()
	Main(run(func() int {
		t.Error("the tests run without a server")
		return 0
	}), func(tb TB) { StartRedis(tb) })
}
