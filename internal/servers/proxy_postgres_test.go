package servers

import (
	"testing"
	"time"
)

// TestProxyPostgres does to a session what befalls one on a bad network.
func TestProxyPostgres(t *testing.T) {
	server := sharedPostgres(t)
	server.Must("CREATE TABLE t (a int)")
	proxy := StartProxy(t, server.Addr())
	open := func() *console {
		t.Helper()
		c := openPsql(t, server, proxy.Addr())
		c.send("SELECT 'open';")
		c.wantLine("open")
		return c
	}

	c := open()
	proxy.Replies.Delay(time.Hour)
	c.send("SELECT 1;")
	c.wantSilence()
	proxy.Replies.Delay(0)
	c.wantLine("1")

	// The answer to a commit is lost: it has happened, and nobody knows.
	proxy.Replies.Drop(true)
	c.send("INSERT INTO t VALUES (1);")
	Until(t, "the commit", func() bool { return server.Must("SELECT count(*) FROM t") == "1" })
	Until(t, "the loss", func() bool { return proxy.Replies.Dropped() > 0 })
	proxy.Replies.Drop(false)
	c.wantLoss()

	// The commit itself is lost, and the server forgets the transaction.
	c = open()
	c.send("BEGIN; INSERT INTO t VALUES (2); SELECT 'inserted';")
	c.wantLine("inserted")
	proxy.Requests.Drop(true)
	c.send("COMMIT;")
	Until(t, "the loss", func() bool { return proxy.Requests.Dropped() > 0 })
	proxy.Requests.Drop(false)
	c.wantLoss()
	Until(t, "the end of the session", func() bool {
		return server.Must("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'") == "1"
	})
	if got := server.Must("SELECT count(*) FROM t"); got != "1" {
		t.Errorf("the server has %s rows, want the one that was committed", got)
	}

	c = open()
	c.send("SELECT 'asleep'; SELECT pg_sleep(3600);")
	c.wantLine("asleep")
	proxy.Reset()
	c.wantLoss()
	open()
}
