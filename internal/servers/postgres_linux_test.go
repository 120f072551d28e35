package servers

import "testing"

// TestPostgresKill kills a server whose children are busy. None may live on, or
// it could still commit.
func TestPostgresKill(t *testing.T) {
	p := StartPostgres(t, "fsync = off")
	s := openPsql(t, p, p.Addr())
	s.send("SELECT 'asleep'; SELECT pg_sleep(3600);")
	s.wantLine("asleep")
	below := family(t, p)
	p.Kill()
	wantGone(t, below)
	s.wantLoss()
	p.Restart()
	p.Must("SELECT 1")
}

func TestPostgresPause(t *testing.T) {
	p := StartPostgres(t, "fsync = off")
	s := openPsql(t, p, p.Addr())
	for range 2 {
		s.send("SELECT 1;")
		s.wantLine("1")
		p.Pause()
		for _, pid := range family(t, p) {
			if state, _, _ := status(pid); state != "T" && state != "Z" { // one may just have ended
				t.Errorf("process %d has the state %s", pid, state)
			}
		}
		s.send("SELECT 2;")
		p.Resume()
		s.wantLine("2")
	}
	p.Pause()
	below := family(t, p)
	p.Kill()
	wantGone(t, below)
	p.Restart()
	p.Pause()
	p.Pause() // the end of the test kills what is paused
}

// family returns the processes below the server, of which there are some.
func family(t *testing.T, p *Postgres) []int {
	t.Helper()
	below, err := descendants(p.cmd.Process.Pid)
	if err != nil || len(below) == 0 {
		t.Fatalf("the server has the children %v, %v", below, err)
	}
	return below
}

func wantGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if state, _, err := status(pid); err == nil && state != "Z" {
			t.Errorf("process %d has the state %s", pid, state)
		}
	}
}
