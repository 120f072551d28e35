package servers

import (
	"math/rand/v2"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// The ports are below the range that systems use for outgoing connections. An outgoing
// connection could take the port of a server while the server is down. A client that dials
// a port of that range where nobody listens may even reach itself.
const firstPort, lastPort = 10000, 29999

// reserve returns a free port. Until the test ends, no other call of reserve returns the
// port, in this process or another process, even while the server is down. If anybody else
// takes the port meanwhile, the server reports that and is started on a new port; see
// start.
func reserve(tb TB) int {
	tb.Helper()
	l := occupy(tb)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// occupy listens on a free port that is reserved until the test ends.
func occupy(tb TB) net.Listener {
	tb.Helper()
	var err error
	for range 100 {
		var l net.Listener
		if l, err = occupyAt(tb, firstPort+rand.IntN(lastPort-firstPort+1)); err == nil {
			return l
		}
	}
	tb.Fatalf("no free port: %v", err)
	return nil
}

// occupyAt is occupy for one port. An open UDP port of the same number is the mark of the
// reservation. The mark comes first: the owner of a port may be about to listen there.
func occupyAt(tb TB, port int) (net.Listener, error) {
	mark, err := net.ListenPacket("udp", address(port))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		mark.Close()
		return nil, err
	}
	tb.Cleanup(func() { mark.Close() })
	return l, nil
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
