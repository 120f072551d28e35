package mysqllock

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// refusesSessions expects session mode to refuse what listens at addr before the server, as a
// server that does not exclude.
func refusesSessions(t *testing.T, m *servers.MariaDB, addr string) {
	t.Helper()
	if err := must.Get(NewSession(config(t, m.URL()), nil)).Create(sessiontest.Bounded(t)); err != nil {
		t.Fatal(err)
	}
	err := sessiontest.Refused(t, strings.Replace(m.URL(), m.Addr(), addr, 1)+"?mode=session")
	for _, words := range []string{m.Must("SELECT VERSION()"), "does not exclude: two connections asked for the same lock and got 1, 1"} {
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("got the error %v, want an ErrInvalid with %q", err, words)
		}
	}
}

// A desk passes on the packets of clients to a server.
type desk struct {
	t    *testing.T
	addr string // of the server

	send func(d *desk, client, server net.Conn, packet []byte)

	mu     sync.Mutex
	lent   net.Conn // the session of all clients, nil if each has a session
	asking net.Conn // the client of the last command in that session
}

func (d *desk) serve(client net.Conn) {
	server, err := net.Dial("tcp", d.addr)
	if err != nil {
		return // as if the server had hung up
	}
	d.t.Cleanup(func() { server.Close() })
	go pass(server, func(packet []byte) {
		d.mu.Lock()
		defer d.mu.Unlock()
		to := client
		if server == d.lent {
			to = d.asking
		}
		to.Write(packet)
	})
	pass(client, func(packet []byte) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.send(d, client, server, packet)
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking == client { // An answer may be due, and is for no other client.
		d.lent = nil
	}
}

func pass(from net.Conn, packet func([]byte)) {
	for b := make([]byte, 1<<16); ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		packet(b[:n])
	}
}

// TestSessionRefusesLiars stands before a server that answers 1 to every GET_LOCK: functions
// with names of the same length do.
func TestSessionRefusesLiars(t *testing.T) {
	t.Parallel()
	m := servers.StartMariaDB(t, "innodb_flush_method = nosync")
	d := &desk{t: t, addr: m.Addr(), send: func(_ *desk, _, server net.Conn, packet []byte) {
		packet = bytes.ReplaceAll(packet, []byte("GET_LOCK("), []byte("INTERVAL("))
		server.Write(bytes.ReplaceAll(packet, []byte("RELEASE_LOCK("), []byte("NOT   ISNULL(")))
	}}
	refusesSessions(t, m, servers.StartStranger(t, d.serve))
}

// TestSessionRefusesPooler has a pooler lend the session of one client to all, as ProxySQL does
// that multiplexes.
func TestSessionRefusesPooler(t *testing.T) {
	t.Parallel()
	m := servers.StartMariaDB(t, "innodb_flush_method = nosync")
	const number, command, quit = 3, 4, 1 // of a packet; the number is 0 after the login
	d := &desk{t: t, addr: m.Addr(), send: func(d *desk, client, server net.Conn, packet []byte) {
		switch {
		case packet[number] != 0:
			server.Write(packet)
		case packet[command] != quit:
			if d.lent == nil {
				d.lent = server
			}
			d.asking = client
			d.lent.Write(packet)
		}
	}}
	refusesSessions(t, m, servers.StartStranger(t, d.serve))
}

// several starts two servers with the table of session mode.
func several(t *testing.T) (first, second *servers.MariaDB) {
	t.Helper()
	first, second = servers.StartMariaDB(t, "innodb_flush_method = nosync"), servers.StartMariaDB(t, "innodb_flush_method = nosync")
	for _, m := range []*servers.MariaDB{first, second} {
		if err := must.Get(NewSession(config(t, m.URL()), nil)).Create(sessiontest.Bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	return first, second
}

// TestSessionRefusesSeveralServers has a balancer spread connections over two servers, each
// of which excludes, as it does in front of a Galera cluster.
func TestSessionRefusesSeveralServers(t *testing.T) {
	t.Parallel()
	first, second := several(t)
	balancer := servers.StartBalancer(t, first.Addr(), second.Addr())
	err := sessiontest.Refused(t, strings.Replace(first.URL(), first.Addr(), balancer, 1)+"?mode=session")
	for _, words := range []string{first.Must("SELECT VERSION()"), "does not exclude: two connections asked for the same lock and got 1, 1", "Galera"} {
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("got the error %v, want an ErrInvalid with %q", err, words)
		}
	}
	sessiontest.FailsOver(t, func() driver.Checker {
		addrs := slices.Concat([]string{first.Addr()}, slices.Repeat([]string{second.Addr()}, 1000))
		url := strings.Replace(first.URL(), first.Addr(), servers.StartBalancer(t, addrs...), 1)
		return must.Get(NewSession(config(t, url), nil))
	})
}
