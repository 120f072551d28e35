package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// StartStandby starts a server that follows another and is read-only, and
// returns when it has caught up. It begins with the configuration of the other;
// options are further lines.
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

// Follow kills a server if it runs, makes it a standby of another, and returns when it
// has caught up. It forgets what it had.
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

// Promote makes a standby a primary by hand, without asking the one that is. It
// returns when the server takes writes.
func (p *Postgres) Promote() {
	p.tb.Helper()
	if done := p.Must("SELECT pg_promote()"); done != "t" {
		p.tb.Fatalf("promote %s: it does not take writes", p.Addr())
	}
}

// AwaitStandbys returns when n standbys show all that was committed so far.
func (p *Postgres) AwaitStandbys(n int) {
	p.tb.Helper()
	position := p.Must("SELECT pg_current_wal_lsn()")
	mustAwait(p.tb, "the standbys of "+p.Addr(), func() error {
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
