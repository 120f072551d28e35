// Package servers starts real servers for tests: each on free loopback ports,
// with a folder of its own, and gone when the test ends, even if the test
// binary is killed. What can befall a server in production can be done to it
// here: it is killed, paused, restarted with or without its data, promoted,
// and cut off by a [Proxy].
//
//	r := servers.StartRedis(t, "appendonly yes")
//	p := servers.StartProxy(t, r.Addr())
//	p.Replies.Delay(100 * time.Millisecond)
//	r.Kill()
//	r.Restart()
//
// A test whose server is not installed is skipped, and fails with
// HOLDFAST_TEST_ALL; it names the package to install. scripts/servers installs them
// all, or lists what is not tested. What a server has said is
// logged if its test fails. When root runs the tests, servers that refuse to run
// as root run as a plain user.
//
// The methods may be called from several goroutines. What goes wrong in them
// ends the test by Fatalf, so that only the calling goroutine stops at once.
package servers

// TB is what the servers need of a testing.TB. A [Host] is one without a test, a
// [Clock] one that gives them a clock of their own.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	TempDir() string
}
