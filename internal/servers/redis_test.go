package servers

import (
	"bufio"
	"crypto/tls"
	"errors"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestRedis(t *testing.T) {
	r := StartRedis(t)
	addr := r.Addr()
	r.Must("SET", "key", "a\r\nb")
	if got := r.Must("GET", "key"); got != "a\r\nb" {
		t.Errorf("got %q", got)
	}
	r.Kill()
	if _, err := r.Do("PING"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a killed server says %v, want a refused connection", err)
	}
	r.Restart()
	if r.Addr() != addr || r.URL() != "redis://"+addr {
		t.Errorf("was at %s and is at %s, %s", addr, r.Addr(), r.URL())
	}
	if got := r.Must("GET", "key"); got != nil {
		t.Errorf("got %q after a restart without persistence", got)
	}
}

func TestRestartWithData(t *testing.T) {
	r := StartRedis(t, "appendonly yes", "appendfsync always")
	r.Must("SET", "key", "value")
	r.Restart()
	if got := r.Must("GET", "key"); got != "value" {
		t.Errorf("got %v after a restart with the data", got)
	}
	r.RestartEmpty()
	if got := r.Must("GET", "key"); got != nil {
		t.Errorf("got %q after a restart without the data", got)
	}
}

// TestRestartLoads restarts a server that takes its time to load its data.
func TestRestartLoads(t *testing.T) {
	r := StartRedis(t, "rdbcompression no", "key-load-delay 10000", "loading-process-events-interval-bytes 1024", "enable-debug-command local")
	r.Must("DEBUG", "POPULATE", "20", "key", "4096")
	r.Must("SAVE")
	r.Restart()
	if got := r.Must("DBSIZE"); got != int64(20) {
		t.Errorf("has %v keys", got)
	}
	r.RestartEmpty()
	if got := r.Must("DBSIZE"); got != int64(0) {
		t.Errorf("has %v keys after a restart without the data", got)
	}
}

func TestMasters(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range StartMasters(t, 5) {
		seen[r.Addr()] = true
		if role := r.Info("role"); role != "master" {
			t.Errorf("%s is a %s", r.Addr(), role)
		}
	}
	if len(seen) != 5 {
		t.Errorf("five masters listen at %d addresses", len(seen))
	}
}

func TestRedisTLS(t *testing.T) {
	r := StartRedisTLS(t)
	r.Must("PING")
	r.Restart()
	r.Must("PING")
	if want := "rediss://" + r.Addr(); r.URL() != want {
		t.Errorf("is at %s, want %s", r.URL(), want)
	}
	if conn, err := tls.Dial("tcp", r.Addr(), nil); err == nil {
		conn.Close()
		t.Error("the authority is known to the whole system")
	}

	strict := StartRedisTLS(t, "tls-auth-clients yes")
	config := strict.TLS.Config()
	config.Certificates = nil
	conn, err := tls.Dial("tcp", strict.Addr(), config)
	if err == nil {
		_, err = roundTrip(conn, patience, []string{"PING"}) // TLS 1.3 tells only now
		conn.Close()
	}
	if err == nil {
		t.Error("a client without certificate was let in")
	}
}

func TestRedisErrors(t *testing.T) {
	r := StartRedis(t)
	var refused RedisError
	if _, err := r.Do("NO-SUCH-COMMAND"); !errors.As(err, &refused) {
		t.Errorf("got %v, want an error of the server", err)
	}
	r.Must("SCRIPT", "LOAD", "return 1")
	const sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
	r.Must("EVALSHA", sha, "0")
	r.FlushScripts()
	if _, err := r.Do("EVALSHA", sha, "0"); !errors.As(err, &refused) || !strings.HasPrefix(refused.Error(), "NOSCRIPT") {
		t.Errorf("got %v after the scripts were flushed", err)
	}
}

func TestAddUser(t *testing.T) {
	r := StartRedis(t)
	r.AddUser("worker", "secret", "~app:*", "+set")
	s := connect(t, r.Addr())
	for _, step := range []struct{ command, want string }{
		{"AUTH worker wrong", "-WRONGPASS"},
		{"AUTH worker secret", "+OK"},
		{"SET app:1 x", "+OK"},
		{"SET other x", "-NOPERM"},
		{"GET app:1", "-NOPERM"},
	} {
		s.send(step.command)
		if got, err := s.receive(); err != nil || !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: received %q, %v; want %s", step.command, got, err, step.want)
		}
	}
}

func TestKillClients(t *testing.T) {
	r := StartRedis(t)
	open := func(command, want string) session {
		s := connect(t, r.Addr())
		s.send(command)
		s.wantReply(want)
		return s
	}
	caller, listener := open("PING", "+PONG"), open("SUBSCRIBE c", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1")
	r.KillClients()
	for _, s := range []session{caller, listener} {
		if got, err := s.receive(); err == nil {
			t.Errorf("received %q on a connection that was killed", got)
		}
	}
	r.KillClient() // there is none
	caller = open("PING", "+PONG")
	r.KillClient()
	if got, err := caller.receive(); err == nil {
		t.Errorf("received %q on a connection that was killed", got)
	}
}

func TestReadReply(t *testing.T) {
	for text, want := range map[string]any{
		"+OK\r\n":                       "OK",
		"-ERR no\r\n":                   RedisError("ERR no"),
		":-5\r\n":                       int64(-5),
		"$4\r\na\r\nb\r\n":              "a\r\nb",
		"$0\r\n\r\n":                    "",
		"$-1\r\n":                       nil,
		"*-1\r\n":                       nil,
		"*0\r\n":                        []any{},
		"*2\r\n:1\r\n*1\r\n-ERR no\r\n": []any{int64(1), []any{RedisError("ERR no")}},
	} {
		if got, err := readReply(bufio.NewReader(strings.NewReader(text))); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %#v, %v; want %#v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "+OK", ":x\r\n", "$9\r\nshort\r\n", "*2\r\n:1\r\n", "?1\r\n"} {
		if got, err := readReply(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q: got %#v", text, got)
		}
	}
}
