package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// The ports are below the range that systems use for outgoing connections. An outgoing
// connection could take the port of a server while the server is down. A client that dials
// a port of that range where nobody listens may even reach itself.
const firstPort, lastPort = 10000, 29999

// listen listens on a free loopback port.
func listen() (l net.Listener, err error) {
	for range 100 {
		if l, err = listenAt(firstPort + rand.IntN(lastPort-firstPort+1)); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no free port: %w", err)
}

// listenAt listens on a port unless the port is reserved. listenAt looks for the mark
// first: the owner of a port may be about to listen there.
func listenAt(port int) (net.Listener, error) {
	mark, err := net.ListenPacket("udp", address(port))
	if err != nil {
		return nil, err
	}
	defer mark.Close()
	return net.Listen("tcp", address(port))
}

// reserve returns a free port. Until the test ends, no other call of reserve returns the
// port, in this process or another process, even while the server is down. If anybody else
// takes the port meanwhile, the server reports that and is started on a new port; see
// start.
func reserve(tb TB) (int, error) {
	l, err := occupy(tb)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// occupy listens on a free port that is reserved until the test ends. An open UDP port of
// the same number is the mark of the reservation.
func occupy(tb TB) (net.Listener, error) {
	for {
		l, err := listen()
		if err != nil {
			return nil, err
		}
		mark, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			tb.Cleanup(func() { mark.Close() })
			return l, nil
		}
		l.Close()
	}
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
