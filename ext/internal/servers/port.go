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
		if l, err = net.Listen("tcp", address(firstPort+rand.IntN(lastPort-firstPort+1))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no free port: %w", err)
}

// freePort returns a port that was free a moment ago. If another has taken it
// since, the server says so, and is started on another; see start.
func freePort() (int, error) {
	l, err := listen()
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
