package servers

import (
	"io"
	"net"
)

// StartDoubler listens on a free port as a proxy that retries for no reason: every request
// reaches the server at addr twice, and clients see one of the two replies. The second copy
// travels over a separate connection, and may come first. StartDoubler returns the address.
func StartDoubler(tb TB, addr string) string {
	tb.Helper()
	return StartStranger(tb, func(client net.Conn) {
		server, err := net.Dial("tcp", addr)
		if err != nil {
			return // as if the server had hung up
		}
		defer server.Close()
		again, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer again.Close()
		go io.Copy(io.Discard, again) // ends with the connection
		go func() {
			defer server.Close()
			io.Copy(io.MultiWriter(again, server), client)
		}()
		io.Copy(client, server)
	})
}
