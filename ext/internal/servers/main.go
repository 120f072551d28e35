package servers

import "errors"

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
	h := &Host{failed: true} // unless the tests end and pass
	defer func() {
		if err := h.Close(); err != nil {
			panic(err.Error())
		}
	}()
	if err := h.Try(func() { start(h) }); errors.Is(err, ErrMissing) {
		h.Logf("SKIP: all tests of this package: %v", err)
		return 0
	} else if err != nil {
		panic(err.Error())
	}
	code = tests.Run()
	h.failed = code != 0
	return code
}
