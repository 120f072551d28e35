package servers

import (
	"fmt"
	"os"
	"sync"
)

// Main runs the tests of a package and returns their exit code. The servers
// that start starts serve all of them:
//
//	func TestMain(m *testing.M) {
//		os.Exit(servers.Main(m, func(tb servers.TB) { redis = servers.StartRedis(tb) }))
//	}
//
// No single test stands for what goes wrong with such a server, so that Main,
// or whoever uses the server, panics. If one is not installed, no test runs.
func Main(tests interface{ Run() int }, start func(TB)) (code int) {
	p := &pkg{failed: true} // unless the tests end and pass
	defer p.cleanup()
	if !p.started(start) {
		return 0
	}
	code = tests.Run()
	p.failed = code != 0
	return code
}

// A skipped is why a package is not tested.
type skipped string

// started starts the servers, and reports whether all are installed.
func (p *pkg) started(start func(TB)) (all bool) {
	defer func() {
		switch seen := recover().(type) {
		case nil:
		case skipped:
			p.Logf("SKIP: all tests of this package: %s", seen)
		default:
			panic(seen)
		}
	}()
	start(p)
	return true
}

// A pkg is the TB of a whole package.
type pkg struct {
	mu       sync.Mutex
	cleanups []func()
	failed   bool
}

func (p *pkg) Helper() {}

func (p *pkg) Failed() bool { return p.failed }

func (p *pkg) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (p *pkg) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (p *pkg) Skipf(format string, args ...any) { panic(skipped(fmt.Sprintf(format, args...))) }

func (p *pkg) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

func (p *pkg) TempDir() string {
	dir, err := os.MkdirTemp("", "servers")
	if err != nil {
		p.Fatalf("make a folder: %v", err)
	}
	p.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (p *pkg) cleanup() {
	for i := len(p.cleanups) - 1; i >= 0; i-- {
		p.cleanups[i]()
	}
}
