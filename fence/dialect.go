package fence

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/identifier"
)

// A Dialect is the SQL of an engine.
type Dialect int

// The engines. There is no default.
const (
	Postgres Dialect = iota + 1 // PostgreSQL
	MySQL                       // MySQL and MariaDB
	SQLite                      // SQLite 3.35 or later
)

// String returns the name of the engine.
func (d Dialect) String() string {
	switch d {
	case Postgres:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// statements are those of a dialect, with %s for the table. Keys are bytes,
// because some texts cannot hold every character, and some collations take Job
// and job for the same.
//
// raise writes in any case: it thereby locks the row until the transaction has
// ended, so that one with a larger token waits for the write that follows.
type statements struct {
	quote  string
	create string
	raise  string // from key and token
	read   string // the highest token of a key, where raise returns none
}

var dialects = map[Dialect]statements{
	Postgres: {
		quote: `"`,
		// Two sessions cannot both create what does not exist: one fails. So they
		// take turns. Half of each page is left to the next versions of its rows.
		create: `DO $$ BEGIN
PERFORM pg_advisory_xact_lock(7525352680829580148);
CREATE TABLE IF NOT EXISTS %s (name bytea PRIMARY KEY, fence bigint NOT NULL) WITH (fillfactor = 50);
END $$`,
		raise: `INSERT INTO %s AS f (name, fence) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET fence = greatest(f.fence, excluded.fence) RETURNING fence`,
	},
	MySQL: {
		quote:  "`",
		create: `CREATE TABLE IF NOT EXISTS %s (name varbinary(512) NOT NULL PRIMARY KEY, fence bigint NOT NULL) ENGINE = InnoDB`,
		raise:  `INSERT INTO %s (name, fence) VALUES (?, ?) ON DUPLICATE KEY UPDATE fence = greatest(fence, values(fence))`,
		// The count of affected rows depends on how the client has connected, and
		// the id inserted last is the caller's. Without FOR UPDATE one would see
		// the row as of the first SELECT of the transaction.
		read: `SELECT fence FROM %s WHERE name = ? FOR UPDATE`,
	},
	SQLite: {
		quote:  `"`,
		create: `CREATE TABLE IF NOT EXISTS %s (name blob NOT NULL PRIMARY KEY, fence integer NOT NULL) WITHOUT ROWID`,
		raise: `INSERT INTO %s AS f (name, fence) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET fence = max(f.fence, excluded.fence) RETURNING fence`,
	},
}

// compile puts the name of a table, perhaps after that of a schema and a dot,
// into the statements.
func (d Dialect) compile(table string) (statements, error) {
	st, ok := dialects[d]
	if !ok {
		return st, fmt.Errorf("fence: %v is no engine: set SQL.Dialect to Postgres, MySQL or SQLite", d)
	}
	name, err := identifier.Quote(table, "", st.quote)
	if err != nil {
		return st, fmt.Errorf("fence: SQL.Table: %w", err)
	}
	for _, text := range []*string{&st.create, &st.raise, &st.read} {
		*text = strings.Replace(*text, "%s", name, 1)
	}
	return st, nil
}
