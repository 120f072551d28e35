package servers

import (
	"strings"
	"testing"
)

func TestMariaDB(t *testing.T) {
	m := StartMariaDB(t, "max_connections = 17")
	if got := m.Must("SELECT @@max_connections, @@innodb_flush_log_at_trx_commit"); got != "17\t1" {
		t.Errorf("the settings are %q", got)
	}
	m.Must("CREATE TABLE t (a int, b text) ENGINE=InnoDB; INSERT INTO t VALUES (1, 'x'), (2, 'y')")
	addr := m.Addr()
	m.Kill()
	if _, err := m.Do("SELECT 1"); err == nil || !strings.Contains(err.Error(), "Can't connect") {
		t.Errorf("a killed server says %v", err)
	}
	m.Restart()
	if got := m.Must("SELECT * FROM t"); got != "1\tx\n2\ty" || m.Addr() != addr {
		t.Errorf("after a restart it has %q at %s, and was at %s", got, m.Addr(), addr)
	}
	_, err := m.Do("SELECT 1; SELECT nonsense; SELECT 2")
	if err == nil || !strings.Contains(err.Error(), "Unknown column 'nonsense'") {
		t.Errorf("got %v", err)
	}
}

func TestMariaDBPassword(t *testing.T) {
	m := StartMariaDB(t, "innodb_flush_method = nosync")
	if want := "mysql://root:secret@" + m.Addr() + "/holdfast"; m.URL() != want {
		t.Errorf("is at %s, want %s", m.URL(), want)
	}
	for _, password := range []string{"wrong", ""} {
		_, err := query(m.console(m.Addr(), password), "SELECT 1")
		if err == nil || !strings.Contains(err.Error(), "Access denied") {
			t.Errorf("with the password %q: %v", password, err)
		}
	}
}

func TestMariaDBPause(t *testing.T) {
	m := StartMariaDB(t, "innodb_flush_method = nosync")
	s := openConsole(t, m.console(m.Addr(), mariaPassword))
	for range 2 {
		s.send("SELECT 1;")
		s.wantLine("1")
		m.Pause()
		s.send("SELECT 2;")
		s.wantSilence()
		m.Resume()
		s.wantLine("2")
	}
	m.Pause()
	m.Restart()
	m.Must("SELECT 1")
	m.Stop()
	if !strings.Contains(m.log(), "Shutdown complete") {
		t.Errorf("the server was not asked to end; its log says\n%s", m.log())
	}
}
