package servers

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// A process that another test is just starting has a copy of each listener, until it runs.
func TestProxyRefuseBesideACopy(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, address(1))
	copied, err := p.listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	p.Refuse(true)
	if conn, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v, %v, want to be refused", conn, err)
	}
	p.Refuse(false)
	if _, err := net.Dial("tcp", p.Addr()); errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial once the proxy accepts again: %v", err)
	}
}
