package verify

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/fileurl"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A database lists its contents by SQL.
type database struct {
	ask    func(sql string) (lines string)
	tables string // selects the names of the tables that may hold locks
	now    string // in microseconds
	text   string // claims as text
}

// rows finds rows with a claim that holds or waits, and rows with data that does not end
// within bound. Rows stay for an hour, with their tokens.
func (d database) rows(bound time.Duration) (left []string) {
	for table := range strings.Lines(d.ask(d.tables)) {
		left = append(left, still("row", d.ask(fmt.Sprintf(`SELECT name FROM %[1]s
WHERE name NOT LIKE '_boot %%' AND (until > %[2]s + %[4]d
OR until > %[2]s AND (%[3]s LIKE '%%"held"%%' OR %[3]s LIKE '%%"line"%%'))`,
			strings.TrimSpace(table), d.now, d.text, bound.Microseconds())))...)
	}
	return left
}

// leftInPostgres finds rows, advisory locks and connections. A standby has the rows of the
// primary.
func leftInPostgres(primary *servers.Postgres, standbys ...*servers.Postgres) func(time.Duration) []string {
	return func(bound time.Duration) []string {
		left := database{
			primary.Must, `SELECT format('%I.%I', table_schema, table_name) FROM information_schema.columns WHERE column_name = 'sole'`,
			"(extract(epoch FROM clock_timestamp()) * 1000000)::bigint", "claims::text",
		}.rows(bound)
		for _, p := range append(standbys, primary) {
			left = append(left, still("advisory lock", p.Must(`SELECT pid, classid, objid FROM pg_locks WHERE locktype = 'advisory'`))...)
			left = append(left, still("connection", p.Must(`SELECT pid, state, query FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`))...)
		}
		return left
	}
}

// leftInMariaDB finds rows and connections. The locks of a session end with the connection.
func leftInMariaDB(m *servers.MariaDB) func(time.Duration) []string {
	return func(bound time.Duration) []string {
		left := database{
			m.Must, "SELECT concat('`', table_schema, '`.`', table_name, '`') FROM information_schema.columns WHERE column_name = 'sole'",
			"floor(unix_timestamp(sysdate(6)) * 1000000)", "claims",
		}.rows(bound)
		return append(left, still("connection", m.Must(`SELECT id, state, info FROM information_schema.processlist
WHERE user = substring_index(current_user(), '@', 1) AND command <> 'Daemon' AND id <> connection_id()`))...)
	}
}

// leftInSQLite finds rows.
func leftInSQLite(tb servers.TB, path string) func(time.Duration) []string {
	at := fileurl.Of("file", path) + "?_pragma=busy_timeout(10000)"
	ask := func(text string) (lines string) {
		db, err := sql.Open("sqlite", at)
		if err == nil {
			lines, err = told(db, text)
			err = errors.Join(err, db.Close())
		}
		if err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
		return lines
	}
	return database{
		ask, "SELECT t.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' AND c.name = 'sole'",
		"((julianday('now') - 2440587.5) * 86400000000)", "claims",
	}.rows
}

// told returns the result of a query of a single column, one row a line.
func told(db *sql.DB, query string) (lines string, err error) {
	rows, err := db.Query(query)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return "", err
		}
		lines += one + "\n"
	}
	return lines, rows.Err()
}
