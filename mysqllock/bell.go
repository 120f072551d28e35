package mysqllock

import (
	"cmp"
	"database/sql"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/internal/doorbell"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// bellLocks are GET_LOCK locks, with {table} for the table of the claims. The numbers are
// the values of [sqlstore.Heard].
var bellLocks = doorbell.Locks{
	Hold:    `SELECT get_lock(?, 1)`,
	Ring:    `SELECT release_lock(?) + get_lock(?, 1) = 2`,
	Held:    `SELECT is_used_lock(?) = connection_id()`,
	Release: `SELECT release_lock(?)`,
	Wait: `SELECT CASE WHEN coalesce((SELECT version FROM {table} WHERE name = ?), 0) <> ? THEN 2
WHEN is_used_lock(?) IS NULL THEN 3 ELSE coalesce(get_lock(?, 1), 3) END, release_lock(?)`,
}

// newBell returns a bell on a server, for the claims in a table. The name of the table may be
// empty.
func newBell(config *mysql.Config, table string) (*doorbell.Bell, error) {
	table, err := quoted(cmp.Or(table, sqlstore.DefaultTable))
	if err != nil {
		return nil, err
	}
	db, err := bellDatabase(config)
	if err != nil {
		return nil, err
	}
	locks := bellLocks
	locks.Wait = strings.Replace(locks.Wait, "{table}", table, 1)
	return doorbell.New(db, locks, nil), nil
}

// bellDatabase is the database of a bell.
func bellDatabase(config *mysql.Config) (*sql.DB, error) {
	config = config.Clone()
	config.InterpolateParams = true // saves a round trip: no two waits have the same bell
	config.Params["wait_timeout"] = strconv.Itoa(int(doorbell.Silence.Seconds()))
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
