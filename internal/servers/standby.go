package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// StartStandby starts a read-only server that follows another server, and returns when the
// standby has caught up. The standby begins with the configuration of the primary; options
// are extra lines.
func StartStandby(tb TB, of *Postgres, options ...string) *Postgres {
	tb.Helper()
	p := &Postgres{bin: of.bin, owner: of.owner}
	p.start(tb, options, func(data string) error { return p.copy(of, data) })
	of.AwaitStandbys(1)
	return p
}

// copy makes the folder of a standby.
func (p *Postgres) copy(of *Postgres, data string) error {
	return p.owner.tool(filepath.Dir(data), p.program("pg_basebackup"), "--pgdata="+data, "--dbname="+of.URL(),
		"--checkpoint=fast", "--no-sync", "--write-recovery-conf")
}

// Follow kills a server if the server runs, makes the server a standby of another server,
// and returns when the standby has caught up. The standby loses its former data.
func (p *Postgres) Follow(of *Postgres) {
	p.tb.Helper()
	p.restart(func() error {
		p.forget()
		if err := os.RemoveAll(p.data); err != nil {
			return err
		}
		if err := p.copy(of, p.data); err != nil {
			return err
		}
		return p.write(nil)
	})
	of.AwaitStandbys(1)
}

// Promote makes a standby a primary by hand, without consent of the old primary. Promote
// returns when the server takes writes.
func (p *Postgres) Promote() {
	p.tb.Helper()
	if done := p.Must("SELECT pg_promote()"); done != "t" {
		p.tb.Fatalf("promote %s: it does not take writes", p.Addr())
	}
}

// AwaitStandbys returns when n standbys show all commits so far.
func (p *Postgres) AwaitStandbys(n int) {
	p.tb.Helper()
	position := p.Must("SELECT pg_current_wal_lsn()")
	Await(p.tb, "the standbys of "+p.Addr(), func() error {
		got, err := p.Do("SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= '" + position + "'")
		if err != nil {
			return err
		}
		if count, err := strconv.Atoi(got); err != nil || count < n {
			return fmt.Errorf("%s of %d keep up", got, n)
		}
		return nil
	})
}
