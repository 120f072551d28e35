package servers

import (
	"strings"
	"testing"
)

func TestStandby(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s: make prove")
	}
	p := StartPostgres(t)
	p.Must("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
	s := StartStandby(t, p)
	if got := s.Must("SELECT a FROM t"); got != "1" {
		t.Errorf("the standby has %q", got)
	}
	if _, err := s.Do("INSERT INTO t VALUES (2)"); err == nil || !strings.Contains(err.Error(), "read-only transaction") {
		t.Errorf("a write to a standby: %v", err)
	}
	p.Must("INSERT INTO t VALUES (2)")
	p.AwaitStandbys(1)
	if got := s.Must("SELECT count(*) FROM t"); got != "2" {
		t.Errorf("the standby has %s rows", got)
	}
	s.Restart()
	p.Must("INSERT INTO t VALUES (3)")
	p.AwaitStandbys(1)
	p.Kill()
	s.Promote()
	s.Must("INSERT INTO t VALUES (4)")
	if got := s.Must("SELECT count(*) FROM t"); got != "4" {
		t.Errorf("the promoted standby has %s rows", got)
	}
	p.Follow(s)
	s.Must("INSERT INTO t VALUES (5)")
	s.AwaitStandbys(1)
	if got := p.Must("SELECT count(*) FROM t"); got != "5" {
		t.Errorf("the old primary has %s rows", got)
	}
}
