package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// Ports below those that systems lend to outgoing connections. Such a loan
// could take the port of a server while it is down, and a client that dials a
// port of that range where nobody listens may even reach itself.
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

// listenAt listens on a port unless it is reserved. It looks for the mark first: the
// owner of a port may be about to listen there.
func listenAt(port int) (net.Listener, error) {
	mark, err := net.ListenPacket("udp", address(port))
	if err != nil {
		return nil, err
	}
	defer mark.Close()
	return net.Listen("tcp", address(port))
}

// reserve returns a free port that nobody who asks for one gets until the test
// ends, in this process or another: not even while its server is down. If anybody else
// has taken the port since, the server says so, and is started on another; see start.
func reserve(tb TB) (int, error) {
	l, err := occupy(tb)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// occupy listens on a free port that is reserved until the test ends. The same port
// of UDP is the mark of that.
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
