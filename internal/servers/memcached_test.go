package servers

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func TestMemcached(t *testing.T) {
	m := StartMemcached(t, "-m", "8")
	addr := m.Addr()
	m.Must("set key 0 0 4\r\na\r\nb", "STORED")
	m.Must("mg key s", "HD s4")
	if got := m.Stat("limit_maxbytes"); got != 8<<20 {
		t.Errorf("has %d bytes of memory, want 8 MB", got)
	}
	m.Kill()
	if _, err := m.Do("mn"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a killed server says %v, want a refused connection", err)
	}
	m.Restart()
	if m.Addr() != addr || m.URL() != "memcached://"+addr {
		t.Errorf("was at %s and is at %s, %s", addr, m.Addr(), m.URL())
	}
	m.Must("mg key s", "EN")
}

func TestMemcachedPause(t *testing.T) {
	m := StartMemcached(t)
	m.Pause()
	if err := m.ready(m.cmd.Process.Pid); !late(err) {
		t.Errorf("a paused server answers: %v", err)
	}
	m.Resume()
	m.Must("mn", "MN")
}

func TestMemcachedUser(t *testing.T) {
	m := StartMemcachedUser(t, "bob", "se:cret")
	m.Must("mn", "MN")
	m.Restart()
	m.Must("mn", "MN")
	if !strings.HasPrefix(m.URL(), "memcached://bob:se%3Acret@127.0.0.1:") {
		t.Errorf("is at %s", m.URL())
	}
	m.password = "wrong"
	if got, err := m.Do("mn"); err == nil {
		t.Errorf("received %q with a wrong password", got)
	}
	m.user = ""
	if got, err := m.Do("mn"); err != nil || !strings.HasPrefix(got, "CLIENT_ERROR") {
		t.Errorf("received %q and %v without a password", got, err)
	}
}
