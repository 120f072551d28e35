package once

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/internal/identifier"
)

// rowFormat is the version of a row. A later format may change every column but name and
// format.
const rowFormat = 1

// statements are the SQL statements of a dialect. Keys and fingerprints are bytes: some
// text types cannot hold every character, and some collations treat Job and job as
// equal. Times are microseconds since 1970.
type statements struct {
	create []string
	load   string // the record of a name
	judge  string // like load, but as of now instead of the start of the transaction
	insert string // from name, token, fingerprint and microseconds, unless there is a row
	take   string // from token, fingerprint, microseconds, name, token and fingerprint
	finish string // from result, microseconds, name and token
	forget string // from token, name and token

	// finishRow and judgeRow are finish and judge that always return a row: the number
	// of changed rows, and format, state and token. Both are "" if the engine needs more than a
	// statement.
	finishRow string
	judgeRow  string

	over   string // some expired names
	remove string // an expired name

	// counted says that insert, take, finish and forget return the number of changed rows as a
	// row, because the client cannot tell.
	counted bool

	// padded says that the engine takes names for equal that differ by bytes of 0 at the end.
	padded bool
}

// name is a key as a parameter.
func (st *statements) name(key string) []byte {
	if st.padded {
		key += "\x01"
	}
	return []byte(key)
}

// parts are the parts of the statements that differ between engines.
type parts struct {
	quote  string
	now    string // the clock when the statement began
	insert string // an insert around VALUES that leaves an existing row unchanged
	create []string
	latest string // after a SELECT, to see what other transactions have committed
	count  string // around an UPDATE, to return the number of changed rows
	mark   string // before the numbers of parameters, "" if parameters are ?

	// changed stands after an UPDATE, and returns the number of changed rows. insert then
	// returns the number of new rows.
	changed string
	octets  bool // a text is not compared with bytes
	top     bool // a query limits its rows by TOP instead of LIMIT
	padded  bool // see statements
}

var dialects = map[dialect.Dialect]parts{
	dialect.Postgres: {
		quote:  `"`,
		now:    `CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)`,
		insert: `INSERT INTO {table} (name, format, state, token, fingerprint, expires) VALUES {values} ON CONFLICT (name) DO NOTHING`,
		// If two sessions create the same missing table at once, one session fails. The
		// advisory lock makes the sessions take turns.
		create: []string{`DO $$ BEGIN
PERFORM pg_advisory_xact_lock(8749283740199283347);
CREATE TABLE IF NOT EXISTS {table} (name bytea PRIMARY KEY, format smallint NOT NULL, state smallint NOT NULL, token bigint NOT NULL,
	fingerprint bytea NOT NULL, result bytea, expires bigint NOT NULL);
CREATE INDEX IF NOT EXISTS {bare_index} ON {table} (expires);
END $$`},
		mark:  "$",
		count: `WITH changed AS ({update} RETURNING name) SELECT count(*) FROM changed`,
	},
	dialect.MySQL: {
		quote:  "`",
		now:    `timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(6))`,
		insert: `INSERT IGNORE INTO {table} (name, format, state, token, fingerprint, expires) VALUES {values}`,
		create: []string{`CREATE TABLE IF NOT EXISTS {table} (name varbinary(512) NOT NULL PRIMARY KEY, format smallint NOT NULL, state smallint NOT NULL, token bigint NOT NULL,
	fingerprint varbinary(256) NOT NULL, result longblob, expires bigint NOT NULL, INDEX {bare_index} (expires)) ENGINE = InnoDB`},
		latest: ` FOR UPDATE`,
	},
	dialect.SQLite: {
		quote:  `"`,
		now:    `CAST((julianday('now') - 2440587.5) * 86400000000 AS integer)`,
		insert: `INSERT INTO {table} (name, format, state, token, fingerprint, expires) VALUES {values} ON CONFLICT (name) DO NOTHING`,
		create: []string{
			`CREATE TABLE IF NOT EXISTS {table} (name blob NOT NULL PRIMARY KEY, format integer NOT NULL, state integer NOT NULL, token integer NOT NULL,
	fingerprint blob NOT NULL, result blob, expires integer NOT NULL)`,
			`CREATE INDEX IF NOT EXISTS {index} ON {bare_table} (expires)`,
		},
	},
	dialect.SQLServer: {
		quote: "[",
		now:   `DATEDIFF_BIG(microsecond, '19700101', SYSUTCDATETIME())`,
		// The error of an existing row must not end the transaction.
		insert: `SET NOCOUNT ON; SET XACT_ABORT OFF; DECLARE @made int = 0;
BEGIN TRY
	INSERT INTO {table} (name, format, state, token, fingerprint, expires) VALUES {values};
	SET @made = 1;
END TRY BEGIN CATCH
	IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;
END CATCH;
SELECT @made`,
		// Of two sessions that create a missing table, one fails, and finds the table.
		create: []string{`IF OBJECT_ID(N'{table}', N'U') IS NULL BEGIN TRY
	CREATE TABLE {table} (name varbinary(513) NOT NULL PRIMARY KEY, format smallint NOT NULL, state smallint NOT NULL, token bigint NOT NULL,
		fingerprint varbinary(256) NOT NULL, result varbinary(max), expires bigint NOT NULL);
END TRY BEGIN CATCH
	IF ERROR_NUMBER() <> 2714 THROW;
END CATCH`, `BEGIN TRY
	CREATE INDEX {bare_index} ON {table} (expires);
END TRY BEGIN CATCH
	IF ERROR_NUMBER() NOT IN (1913, 2714) THROW;
END CATCH`},
		mark:    "@p",
		changed: "\nSELECT @@ROWCOUNT",
		octets:  true,
		top:     true,
		padded:  true,
	},
}

// compile fills the name of a table, optionally after a schema and a dot, into the
// statements.
func compile(engine dialect.Dialect, table string) (statements, error) {
	d, ok := dialects[engine]
	if !ok {
		return statements{}, fmt.Errorf("once: %v is no engine: set SQL.Dialect to dialect.Postgres, dialect.MySQL, dialect.SQLite or dialect.SQLServer", engine)
	}
	words := []string{"{none}", "''", "{top} ", "", "{limit}", "LIMIT 16"}
	if d.octets {
		words[1] = "0x"
	}
	if d.top {
		words[3], words[5] = "TOP 16 ", ""
	}
	words = append(words, "{now}", d.now, "{format}", strconv.Itoa(rowFormat))
	bare := table[strings.LastIndex(table, ".")+1:]
	for _, name := range []struct{ word, table, suffix string }{
		{"{table}", table, ""}, {"{bare_table}", bare, ""}, {"{index}", table, "_expires"}, {"{bare_index}", bare, "_expires"},
	} {
		quoted, err := identifier.Quote(name.table, name.suffix, d.quote)
		if err != nil {
			return statements{}, fmt.Errorf("once: SQL.Table: %w", err)
		}
		words = append(words, name.word, quoted)
	}
	// A record of another format may have expired only by the columns of this one.
	inner := strings.NewReplacer("{there}", "(expires > {now} OR format <> {format})", "{values}", "(?, {format}, 1, ?, ?, {now} + ?)")
	fill := strings.NewReplacer(words...)
	text := func(text string) string {
		if text = fill.Replace(inner.Replace(text)); d.mark != "" {
			text = number(text, d.mark)
		}
		return text
	}
	update := func(update string) string {
		return text(update + d.changed)
	}
	st := statements{
		load:   text(`SELECT format, state, token, fingerprint, result FROM {table} WHERE name = ? AND {there}`),
		insert: text(d.insert),
		take: update(`UPDATE {table} SET state = 1, token = ?, fingerprint = ?, result = NULL, expires = {now} + ?
WHERE name = ? AND format = {format} AND (expires <= {now} OR state <> 2 AND token <= ? AND (state = 0 OR fingerprint = ?))`),
		finish: update(`UPDATE {table} SET state = 2, result = ?, expires = {now} + ? WHERE name = ? AND token = ? AND state = 1 AND expires > {now} AND format = {format}`),
		forget: update(`UPDATE {table} SET state = 0, token = ?, fingerprint = {none}, result = NULL WHERE name = ? AND token <= ? AND expires > {now} AND format = {format}`),
		over:   text(`SELECT {top} name FROM {table} WHERE expires <= {now} AND format = {format} ORDER BY expires {limit}`),
		remove: text(`DELETE FROM {table} WHERE name = ? AND expires <= {now} AND format = {format}`),
	}
	st.judge = st.load + d.latest
	st.counted, st.padded = d.changed != "", d.padded
	if d.count != "" {
		st.finishRow = strings.Replace(d.count, "{update}", st.finish, 1)
		st.judgeRow = text(`SELECT coalesce(max(format), {format}), coalesce(max(state), 0), coalesce(max(token), 0) FROM {table} WHERE name = ? AND {there}`)
	}
	for _, statement := range d.create {
		st.create = append(st.create, text(statement))
	}
	return st, nil
}

// number replaces every ? with its number, after mark.
func number(text, mark string) string {
	var b strings.Builder
	for n, part := range strings.Split(text, "?") {
		if n > 0 {
			b.WriteString(mark + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}
