package servers

import (
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
	}), func(tb TB) { installed(tb, "of-servers", "no-such-server") })
	if code != 0 {
		t.Errorf("the exit code is %d, want 0", code)
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
