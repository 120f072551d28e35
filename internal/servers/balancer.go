package servers

import (
	"io"
	"net"
	"sync/atomic"
)

// StartBalancer listens on a free port, passes connections on to the servers at addrs in
// turn, and returns the address.
func StartBalancer(tb TB, addrs ...string) string {
	tb.Helper()
	var connections atomic.Uint64
	return StartStranger(tb, func(client net.Conn) {
		n := connections.Add(1) - 1
		server, err := net.Dial("tcp", addrs[n%uint64(len(addrs))])
		if err != nil {
			return // as if the server had hung up
		}
		defer server.Close()
		go func() {
			defer server.Close()
			io.Copy(server, client) // ends with either connection
		}()
		io.Copy(client, server)
	})
}
