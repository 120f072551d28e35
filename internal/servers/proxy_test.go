package servers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func proxied(t *testing.T) (*Redis, *Proxy, session) {
	t.Helper()
	r := StartRedis(t)
	p := StartProxy(t, r.Addr())
	return r, p, connect(t, p.Addr())
}

func (s session) wantReset() {
	s.t.Helper()
	if got, err := s.receive(); !errors.Is(err, syscall.ECONNRESET) {
		s.t.Errorf("received %q, %v; want a reset", got, err)
	}
}

func TestProxy(t *testing.T) {
	r, p, s := proxied(t)
	s.send("PING")
	s.wantReply("+PONG")

	long := strings.Repeat("x", 1<<20)
	conn := connect(t, p.Addr())
	if _, err := roundTrip(conn, patience, []string{"SET", "long", long}); err != nil {
		t.Fatal(err)
	}
	if got, err := roundTrip(conn, patience, []string{"GET", "long"}); got != long || err != nil {
		t.Errorf("a long value came back damaged: %v", err)
	}

	s.send("QUIT")
	s.wantReply("+OK")
	if got, err := s.receive(); err == nil || errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("received %q, %v after QUIT, want the end", got, err)
	}

	s = connect(t, p.Addr())
	s.send("PING")
	s.wantReply("+PONG")
	r.Kill()
	if got, err := s.receive(); err == nil {
		t.Errorf("received %q from a killed server", got)
	}
	if conn, err := net.Dial("tcp", p.Addr()); err == nil { // refused as far as a proxy can
		session{conn, t}.wantReset()
		conn.Close()
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	r.Restart()
	s = connect(t, p.Addr())
	s.send("PING")
	s.wantReply("+PONG")
}

func TestProxyDelay(t *testing.T) {
	const delay = 30 * time.Millisecond
	_, p, s := proxied(t)
	s.send("PING")
	s.wantReply("+PONG")
	if p.Requests.Touched()+p.Replies.Touched() > 0 || p.Accepted() != 1 {
		t.Errorf("in peace %d requests and %d replies were touched, on %d connections", p.Requests.Touched(), p.Replies.Touched(), p.Accepted())
	}
	for _, d := range []*Direction{p.Requests, p.Replies} {
		d.Delay(delay)
		start := time.Now()
		s.send("PING")
		s.wantReply("+PONG")
		if took := time.Since(start); took < delay {
			t.Errorf("took %v through a delay of %v", took, delay)
		}
		d.Delay(time.Hour)
		s.send("PING")
		Until(t, "a second piece that is delayed", func() bool { return d.Touched() == 2 })
		s.wantSilence()
		d.Delay(0) // counts for what is on its way
		s.wantReply("+PONG")
		if got := d.Touched(); got != 2 {
			t.Errorf("%d pieces were delayed, want 2", got)
		}
	}
}

func TestProxyDrop(t *testing.T) {
	r, p, _ := proxied(t)
	for i, test := range []struct {
		direction *Direction
		arrived   any
	}{{p.Requests, nil}, {p.Replies, "1"}} {
		s := connect(t, p.Addr())
		s.send("PING")
		s.wantReply("+PONG")
		test.direction.Drop(true)
		key := fmt.Sprint("key", i)
		s.send("SET " + key + " 1")
		Until(t, "a loss", func() bool { return test.direction.Dropped() > 0 })
		s.wantSilence()
		test.direction.Drop(false)
		s.wantReset()
		if got := test.direction.Touched(); got != 1 {
			t.Errorf("%d pieces were touched, want 1", got)
		}
		if got := r.Must("GET", key); got != test.arrived {
			t.Errorf("the server has %v, want %v", got, test.arrived)
		}
	}
}

func TestProxyBlackhole(t *testing.T) {
	r, p, s := proxied(t)
	s.send("PING")
	s.wantReply("+PONG")

	p.Blackhole(true)
	s.send("SET key 1")
	fresh := connect(t, p.Addr())
	fresh.send("PING")
	Until(t, "two requests that are held back", func() bool { return p.Requests.Touched() == 2 })
	s.wantSilence()
	fresh.wantSilence()
	if got := r.Must("GET", "key"); got != nil {
		t.Errorf("the server has %v from within a black hole", got)
	}

	// Replies go first: one to what is let through must not be held back, too.
	var end sync.WaitGroup
	p.Replies.mu.Lock()
	end.Go(func() { p.Blackhole(false) })
	s.wantSilence()
	if got := r.Must("GET", "key"); got != nil {
		t.Errorf("the server has %v, and its reply would be held back", got)
	}
	p.Replies.mu.Unlock()
	end.Wait()
	s.wantReply("+OK")
	fresh.wantReply("+PONG")
	if requests, replies := p.Requests.Touched(), p.Replies.Touched(); requests != 2 || replies != 0 {
		t.Errorf("%d requests and %d replies were held back, want 2 and 0", requests, replies)
	}

	p.Replies.Hold(true)
	s.send("SET key 2")
	Until(t, "the request", func() bool { return r.Must("GET", "key") == "2" })
	s.wantSilence()
	p.Reset()
	s.wantReset()
}

// A cut-off client does not hear that the other side has closed the connection.
func TestProxyBlackholeHidesTheEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := StartProxy(t, l.Addr().String())
	for _, say := range []string{"", "PING"} { // a break that is read, and one that is written to
		s := connect(t, p.Addr())
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s.send("PING")
		if _, err := server.Read(make([]byte, 1)); err != nil { // else the proxy may not have come through
			t.Fatal(err)
		}
		p.Replies.Hold(true)
		server.(*net.TCPConn).SetLinger(0)
		server.Close()
		if say != "" {
			s.send(say)
		}
		s.wantSilence()
		p.Replies.Hold(false)
		if got, err := s.receive(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("received %q, %v; want the end", got, err)
		}
	}
}

func TestProxyRefuse(t *testing.T) {
	_, p, s := proxied(t)
	s.send("PING")
	s.wantReply("+PONG")
	p.Refuse(true)
	p.Refuse(true)
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v, want to be refused", err)
	}
	s.send("PING")
	s.wantReply("+PONG")
	p.Refuse(false)
	p.Refuse(false)
	s = connect(t, p.Addr())
	s.send("PING")
	s.wantReply("+PONG")
}

func TestRedirect(t *testing.T) {
	r, p, s := proxied(t)
	s.send("PING")
	s.wantReply("+PONG")
	other := StartRedis(t)
	p.Lead(other.Addr())
	s.send("PING") // on a connection that stays
	s.wantReply("+PONG")
	p.Redirect(other.Addr())
	if got, err := s.receive(); err == nil {
		t.Errorf("received %q on a connection to the server that was", got)
	}
	s = connect(t, p.Addr())
	s.send("SET key value")
	s.wantReply("+OK")
	if there, here := other.Must("GET", "key"), r.Must("GET", "key"); there != "value" || here != nil {
		t.Errorf("the new server has %v, the old one %v", there, here)
	}
}
