package servers

import "errors"

// Main runs the tests of a package and returns the exit code. The servers that start
// starts serve all tests:
//
//	func TestMain(m *testing.M) {
//		os.Exit(servers.Main(m, func(tb servers.TB) { redis = servers.StartRedis(tb) }))
//	}
//
// A failure of such a server belongs to no single test. So Main panics on a failure, and
// so do callers that use the server. If a server is not installed, no test runs.
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
