package servers

import (
	"net"
	"sync"
)

// StartStranger listens on a free port as a server of no known kind, and returns the
// address. StartStranger calls serve with each connection. The connection is closed when
// serve returns, or at the end of the test.
func StartStranger(tb TB, serve func(net.Conn)) string {
	tb.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		tb.Fatalf("start a stranger: %v", err)
	}
	var serving sync.WaitGroup
	over := make(chan struct{})
	tb.Cleanup(func() {
		close(over)
		l.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served := make(chan struct{})
			serving.Go(func() {
				defer close(served)
				serve(conn)
			})
			serving.Go(func() {
				select {
				case <-served:
				case <-over:
				}
				conn.Close()
			})
		}
	})
	return l.Addr().String()
}
