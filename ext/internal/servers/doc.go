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
// A server that is not installed fails the test, which then names the package
// to install; scripts/servers installs them all. What a server has said is
// logged if its test fails.
//
// The methods may be called from several goroutines. What goes wrong in them
// ends the test by Fatalf, so that only the calling goroutine stops at once.
package servers

import "time"

// TB is what the servers need of a testing.TB.
type TB interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	TempDir() string
}

// patience bounds every wait for a server. A healthy one needs a hundredth.
const patience = 20 * time.Second

// await calls check until it returns nil, and returns its last error when that
// takes too long or gaveUp is closed.
func await(check func() error, gaveUp <-chan struct{}) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-late.C:
			return err
		case <-gaveUp:
			return err
		}
	}
}
