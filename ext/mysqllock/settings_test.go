package mysqllock

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestAutocommit: on a server that commits nothing by itself, a lock is seen by
// all, and a database that somebody else has opened is warned of.
func TestAutocommit(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t, "autocommit = 0", "innodb_flush_log_at_trx_commit = 2")
	if err := opened(t, server.URL()).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lockers [2]*holdfast.Locker
	for i := range lockers {
		var err error
		if lockers[i], err = holdfast.Open(t.Context(), server.URL(), nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { lockers[i].Close() })
	}
	if _, err := lockers[0].TryLock(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	if _, err := lockers[1].TryLock(t.Context(), "key"); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("the second lock returned %v, want ErrHeld", err)
	}

	their := config(t, server.URL())
	their.Params = nil
	connector, err := mysql.NewConnector(their)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	warnings, err := New(db, nil).Check(t.Context())
	if err != nil || len(warnings) != 2 || !strings.HasPrefix(warnings[0], "autocommit is off") || !strings.HasPrefix(warnings[1], "innodb_flush_log_at_trx_commit is not 1") {
		t.Errorf("Check returned %q and %v, want a warning of autocommit and one of the log", warnings, err)
	}
}
