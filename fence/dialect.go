package fence

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/internal/identifier"
)

// statements are the statements of a dialect, with %s for the table. Keys are bytes,
// because some text types cannot hold every character, and some collations treat Job and
// job as equal.
//
// raise always writes and thereby locks the row until the transaction has ended, so that a
// transaction with a larger token waits for the write that follows.
type statements struct {
	quote  string
	create string
	raise  string // from key and token
	read   string // the highest token of a key, where raise returns none

	// padded says that the engine takes keys for equal that differ by bytes of 0 at the end.
	padded bool
}

// name is a key as a parameter.
func (st *statements) name(key string) []byte {
	if st.padded {
		key += "\x01"
	}
	return []byte(key)
}

var dialects = map[dialect.Dialect]statements{
	dialect.Postgres: {
		quote: `"`,
		// Two sessions cannot both create a missing table: the second fails. So the
		// sessions take turns. Half of each page is left for the next versions of its rows.
		create: `DO $$ BEGIN
PERFORM pg_advisory_xact_lock(7525352680829580148);
CREATE TABLE IF NOT EXISTS %s (name bytea PRIMARY KEY, fence bigint NOT NULL) WITH (fillfactor = 50);
END $$`,
		raise: `INSERT INTO %s AS f (name, fence) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET fence = greatest(f.fence, excluded.fence) RETURNING fence`,
	},
	dialect.MySQL: {
		quote:  "`",
		create: `CREATE TABLE IF NOT EXISTS %s (name varbinary(512) NOT NULL PRIMARY KEY, fence bigint NOT NULL) ENGINE = InnoDB`,
		raise:  `INSERT INTO %s (name, fence) VALUES (?, ?) ON DUPLICATE KEY UPDATE fence = greatest(fence, values(fence))`,
		// The count of affected rows depends on how the client has connected, and the last
		// inserted id belongs to the caller. Without FOR UPDATE this SELECT would see the
		// row as of the first SELECT of the transaction.
		read: `SELECT fence FROM %s WHERE name = ? FOR UPDATE`,
	},
	dialect.SQLite: {
		quote:  `"`,
		create: `CREATE TABLE IF NOT EXISTS %s (name blob NOT NULL PRIMARY KEY, fence integer NOT NULL) WITHOUT ROWID`,
		raise: `INSERT INTO %s AS f (name, fence) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET fence = max(f.fence, excluded.fence) RETURNING fence`,
	},
	dialect.SQLServer: {
		quote: "[",
		// Of two sessions that create a missing table, one fails, and finds the table.
		create: `IF OBJECT_ID(N'%s', N'U') IS NULL BEGIN TRY
	CREATE TABLE %s (name varbinary(513) NOT NULL PRIMARY KEY, fence bigint NOT NULL);
END TRY BEGIN CATCH
	IF ERROR_NUMBER() <> 2714 THROW;
END CATCH`,
		// The first check of a key may lose a race to insert the row. The error must not end
		// the transaction. OUTPUT returns an old token in Babelfish after a wait for the row.
		// Settings of a batch outlive the batch there.
		raise: `DECLARE @key varbinary(513) = @p1, @token bigint = @p2, @abort int = @@OPTIONS & 16384;
SET XACT_ABORT OFF;
UPDATE %s SET fence = CASE WHEN fence < @token THEN @token ELSE fence END WHERE name = @key;
IF @@ROWCOUNT = 0 BEGIN TRY
	INSERT INTO %s (name, fence) VALUES (@key, @token);
END TRY BEGIN CATCH
	IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;
	UPDATE %s SET fence = CASE WHEN fence < @token THEN @token ELSE fence END WHERE name = @key;
END CATCH
IF @abort <> 0 SET XACT_ABORT ON`,
		read:   `SELECT fence FROM %s WHERE name = @p1`,
		padded: true,
	},
}

// compile puts the name of a table, optionally with a schema and a dot before it, into the
// statements.
func compile(d dialect.Dialect, table string) (statements, error) {
	st, ok := dialects[d]
	if !ok {
		return st, fmt.Errorf("fence: %v is no engine: set SQL.Dialect to dialect.Postgres, MySQL, SQLite or SQLServer", d)
	}
	name, err := identifier.Quote(table, "", st.quote)
	if err != nil {
		return st, fmt.Errorf("fence: SQL.Table: %w", err)
	}
	for _, text := range []*string{&st.create, &st.raise, &st.read} {
		*text = strings.ReplaceAll(*text, "%s", name)
	}
	return st, nil
}
