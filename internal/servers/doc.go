// Package servers starts real servers for tests. Each server has free loopback ports and a
// separate folder, and is gone when the test ends, even if the test binary is killed. A
// test can cause the failures of production: kill a server, pause a server, restart a
// server with or without data, promote a server, and cut a server off by a [Proxy].
//
//	r := servers.StartRedis(t, "appendonly yes")
//	p := servers.StartProxy(t, r.Addr())
//	p.Replies.Delay(100 * time.Millisecond)
//	r.Kill()
//	r.Restart()
//
// The data folder of a PostgreSQL or MariaDB server is made once per machine, kept in the
// user's folder for caches, and copied. A test that does a server no harm can have a
// separate [Postgres.Database] or [MariaDB.Database] instead of a separate server. If the
// options of PostgreSQL say that the server need not wait for the disk, its folder is in
// memory, where the system has /dev/shm with room.
//
// If a server is not installed, the test is skipped, or fails with HOLDFAST_TEST_ALL. The
// message names the package to install. scripts/servers installs all packages, or lists
// what is not tested. The same holds for a test that needs root, or a newer server. If a
// test fails, the output of its servers is logged. When root runs the tests, servers that
// refuse to run as root run as a plain user.
//
// The methods may be called from several goroutines. A failure in a method ends the test
// by Fatalf, so only the calling goroutine stops at once.
package servers

// TB is the part of testing.TB that the servers need. A [Host] is a TB without a test. A
// [Clock] is a TB that gives the servers a separate clock.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	TempDir() string
}
