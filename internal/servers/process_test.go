package servers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A session is one connection to a Redis server.
type session struct {
	net.Conn
	t *testing.T
}

func connect(t *testing.T, addr string) session {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return session{conn, t}
}

func (s session) send(line string) {
	s.t.Helper()
	if _, err := s.Write([]byte(line + "\r\n")); err != nil {
		s.t.Fatal(err)
	}
}

// receive returns what arrives within a generous time.
func (s session) receive() (string, error) { return s.receiveWithin(patience) }

func (s session) receiveWithin(limit time.Duration) (string, error) {
	s.SetReadDeadline(time.Now().Add(limit))
	buffer := make([]byte, 1<<10)
	n, err := s.Read(buffer)
	return strings.TrimSpace(string(buffer[:n])), err
}

func (s session) wantReply(want string) {
	s.t.Helper()
	if got, err := s.receive(); got != want || err != nil {
		s.t.Errorf("received %q, %v; want %q", got, err, want)
	}
}

// wantSilence cannot fail on a slow machine, and does on any that is quick
// enough to answer within a blink.
func (s session) wantSilence() {
	s.t.Helper()
	if got, err := s.receiveWithin(50 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Errorf("received %q, %v; want silence", got, err)
	}
}

func TestPause(t *testing.T) {
	r := StartRedis(t)
	s := connect(t, r.Addr())
	for range 2 { // a second pause must not see the news of the first
		r.Pause()
		s.send("PING")
		s.wantSilence()
		r.Resume()
		s.wantReply("+PONG")
	}
	r.Pause()
	r.Kill() // a paused server can be killed
	r.Restart()
	r.Must("PING")
}

func TestStall(t *testing.T) {
	const stall = 50 * time.Millisecond
	r := StartRedis(t)
	start := time.Now()
	r.Stall(stall)
	r.Must("PING")
	if took := time.Since(start); took < stall {
		t.Errorf("a server that stalls for %v answered after %v", stall, took)
	}
}

func TestStop(t *testing.T) {
	r := StartRedis(t)
	r.Stop()
	if _, err := r.Do("PING"); err == nil {
		t.Error("a stopped server answers")
	}
	if !strings.Contains(r.log(), "is now ready to exit") {
		t.Errorf("the server was not asked to end; its log says\n%s", r.log())
	}
	r.Stop() // once more changes nothing
	r.Restart()
	r.Must("PING")
}

// TestTakenPort starts a server whose port another has taken first. The other
// answers to PING just as well.
func TestTakenPort(t *testing.T) {
	other := StartRedis(t)
	r, tries := &Redis{}, 0
	r.Process = start(t, program{
		name: "redis",
		path: redisBinary(t),
		setup: func(tb TB, dir string) (args []string, err error) {
			if tries++; tries > 1 {
				return r.configure(tb, dir)
			}
			r.port = other.port
			return []string{"--port", strconv.Itoa(r.port), "--bind", loopback}, nil
		},
		ready: r.ready,
	})
	if tries != 2 || r.port == other.port {
		t.Errorf("after %d tries the server listens on port %d, and %d is taken", tries, r.port, other.port)
	}
	r.Must("PING")
}

// A verdict is the TB of a test that is meant to fail.
type verdict struct {
	*testing.T
	fatal, logged string
	skipped       bool
}

func (v *verdict) Failed() bool { return v.fatal != "" }

func (v *verdict) Logf(format string, args ...any) { v.logged += fmt.Sprintf(format, args...) }

func (v *verdict) Fatalf(format string, args ...any) {
	v.fatal = fmt.Sprintf(format, args...)
	panic(v)
}

// failing runs a test that is meant to fail, to its end.
func failing(t *testing.T, test func(TB)) (v *verdict) {
	t.Helper()
	t.Run("failing", func(t *testing.T) {
		v = &verdict{T: t}
		defer func() {
			if seen := recover(); seen != v {
				t.Errorf("did not fail: %v", seen)
			}
		}()
		test(v)
	})
	return v
}

func (v *verdict) Skipf(format string, args ...any) {
	v.skipped = true
	v.Fatalf(format, args...)
}

func TestMissingBinary(t *testing.T) {
	for _, all := range []string{"", "1"} {
		t.Setenv("HOLDFAST_TEST_ALL", all)
		v := failing(t, func(tb TB) { Installed(tb, "of-servers", "no-such-server") })
		for _, want := range []string{"no-such-server", "package of-servers"} {
			if !strings.Contains(v.fatal, want) {
				t.Errorf("the test ended with %q, which does not tell of %q", v.fatal, want)
			}
		}
		if v.skipped != (all == "") {
			t.Errorf("HOLDFAST_TEST_ALL=%s: skipped: %t", all, v.skipped)
		}
	}
}

// A chosen server is the only server.
func TestMissingChoice(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_ALL", "")
	t.Setenv("HOLDFAST_REDIS", "no-such-server")
	v := failing(t, func(tb TB) { StartRedis(tb) })
	if v.skipped || !strings.Contains(v.fatal, "no-such-server") {
		t.Errorf("the test ended with %q, skipped: %t", v.fatal, v.skipped)
	}
}

func TestLogOfFailure(t *testing.T) {
	v := failing(t, func(tb TB) { StartRedis(tb, "no-such-option yes") })
	for _, want := range []string{"start redis", "exit status 1"} {
		if !strings.Contains(v.fatal, want) {
			t.Errorf("the test failed with %q, which does not tell of %q", v.fatal, want)
		}
	}
	if !strings.Contains(v.logged, "no-such-option") {
		t.Errorf("what the server said was not shown, but %q", v.logged)
	}
}

func TestTail(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_LOGS", "")
	log := strings.Repeat("earlier\n", 100) + "what went wrong\n\tat Server.java:1\n\tat Main.java:2\n" +
		strings.Repeat("long ", 1000) + "\nlast\n"
	lines := strings.Split(tail(log), "\n")
	n := len(lines)
	if n != 5 || lines[n-3] != "what went wrong" || len(lines[n-2]) != 200 || lines[n-1] != "last" {
		t.Errorf("of %d bytes it shows %q", len(log), lines)
	}
	if s := tail(""); s != "" {
		t.Errorf("of nothing it shows %q", s)
	}
	t.Setenv("HOLDFAST_TEST_LOGS", "1")
	if s := tail(log); s != log {
		t.Errorf("of %d bytes that were asked for it shows %d", len(log), len(s))
	}
}
