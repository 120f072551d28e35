package sqlstore

import (
	"errors"
	"strconv"
	"strings"
)

// serverClock is the engine's clock in microseconds since 1970.
const serverClock = `DATEDIFF_BIG(microsecond, '19700101', SYSUTCDATETIME())`

// SQLServerSettings stand before each statement. A connection of a pool may keep what its last
// user has set, and a server may have other defaults. No server notices that a client has left
// while a statement waits for a row. LOCK_TIMEOUT limits each wait for a lock, so a wait for one
// row is shorter than [detached.Grace]. A statement that waits for several rows may take longer;
// its outcome is then unknown. A statement is sent again if a caller still waits.
const SQLServerSettings = "SET NOCOUNT ON; SET XACT_ABORT ON; SET IMPLICIT_TRANSACTIONS OFF; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCK_TIMEOUT 700;\n"

// SQLServer is SQL Server 2016 or later. Use a client of database/sql whose errors have a
// method SQLErrorNumber, such as go-mssqldb. Each statement is one that Babelfish runs, too.
var SQLServer = &Dialect{
	name:     "SQL Server",
	quote:    "[",
	numbered: "@p",
	top:      true,
	octets:   true,
	settings: SQLServerSettings,
	brief:    "SET LOCK_TIMEOUT 10;\n",
	// SQL Server reads a small table as a whole rather than by an index that is not clustered. The
	// statement would then wait for the locked rows of other keys.
	byName: " WITH (ROWLOCK, FORCESEEK)",
	// The clock as of the start of the statement, as in MySQL. Read in the statement itself,
	// the clock may have a different time for each column.
	clock: "DECLARE @now bigint = " + serverClock + ";\n",
	now:   "@now",
	// The count of the client depends on NOCOUNT. OUTPUT and assignments in UPDATE return the
	// old token in Babelfish if the statement has waited for the row. After a lost row the
	// caller reads the row.
	changed:  "\nSELECT CONVERT(bigint, @@ROWCOUNT)",
	minted:   "\nIF @@ROWCOUNT = 1 SELECT fence FROM {table}{by name} WHERE name = ? AND sole = ?",
	lasting:  true,
	unbroken: true,

	// At READ COMMITTED each read is a moment of its own. A row is deleted after its token is in
	// the row without a name. So that row is read last.
	load: `DECLARE @floor bigint, @version bigint, @format int, @fence bigint, @sole varbinary(1024), @since bigint, @until bigint, @claims nvarchar(max);
SELECT @version = version, @format = format, @fence = fence, @sole = sole, @since = since, @until = until, @claims = claims FROM {table}{by name} WHERE name = ?;
IF @version IS NULL SELECT @floor = fence FROM {table}{by name} WHERE name = 0x;
SELECT ` + serverClock + `, 1, @floor, @version, @format, @fence, @sole, @since, @until, @claims`,

	// The name is bytes, because collations treat Job, job and 'Job ' as the same. No name ends
	// with a byte 0, which comparisons ignore. An index of 1,024 bytes cannot be clustered.
	create: []string{`
IF OBJECT_ID(N'{table}', N'U') IS NULL CREATE TABLE {table} (
	name    varbinary(1024) NOT NULL PRIMARY KEY NONCLUSTERED,
	version bigint NOT NULL,
	format  int    NOT NULL,
	fence   bigint NOT NULL,
	sole    varbinary(1024) NOT NULL,
	since   bigint NOT NULL,
	until   bigint NOT NULL,
	claims  nvarchar(max) NOT NULL,
	title   nvarchar(1024) NULL
)`, `
IF OBJECT_ID(N'{view}', N'V') IS NOT NULL DROP VIEW {view}`, `
EXEC (N'` + strings.ReplaceAll(claimsView, "'", "''") + `')`, `
IF NOT EXISTS (SELECT 1 FROM {table} WHERE name = 0x) ` + floorRow,
	},
	// In Babelfish, an application lock is one of the whole server.
	together: `BEGIN TRANSACTION;
DECLARE @got int, @name nvarchar(255) = N'holdfast create ' + DB_NAME();
EXEC @got = sp_getapplock @Resource = @name, @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 10000;
IF @got < 0 THROW 51222, N'another session is making a table of locks', 1;
{create};
COMMIT`,
	insert: `INSERT INTO {table} (name, version, format, fence, sole, since, until, claims, title) VALUES (?, ?, {format}, ?, ?, ?, ?, ?, ?)`,

	// JSON_MODIFY of Babelfish writes numbers of 14 digits as texts. Babelfish takes a second for the
	// first nested calls of functions on a connection, so the statements have none. The collation
	// compares letter by letter.
	add: `UPDATE {table} SET version = {next}, until = CASE WHEN until > @p1 THEN until ELSE @p1 END, claims = STUFF(claims, LEN(claims) - 1, 0, @p2){seek}
WHERE name = @p3 AND until > {now} AND sole = 0x AND CHARINDEX(@p4, claims COLLATE Latin1_General_BIN2) = 0 AND CHARINDEX(N'"line":[', claims COLLATE Latin1_General_BIN2) > 0 AND format = {format}`,
	swap: `UPDATE {table} SET version = {next}, until = CASE WHEN until > @p1 THEN until ELSE @p1 END, claims = REPLACE(claims COLLATE Latin1_General_BIN2, @p2, @p3){seek}
WHERE name = @p4 AND CHARINDEX(@p2, claims COLLATE Latin1_General_BIN2) > 0 AND @p5 > {now} AND format = {format}`,
	relay: `UPDATE {table} SET version = {next}, until = CASE WHEN until > @p1 THEN until ELSE @p1 END, fence = @p2,
	claims = REPLACE(REPLACE(claims COLLATE Latin1_General_BIN2, @p3, @p4), @p5, @p6){seek}
WHERE name = @p7 AND fence = @p8 AND CHARINDEX(@p3, claims COLLATE Latin1_General_BIN2) = 1 AND CHARINDEX(@p5, claims COLLATE Latin1_General_BIN2) > 0 AND format = {format}`,

	light:     "1 = 1",
	commits:   "1 = 1", // The settings see to that.
	duplicate: "2627",

	// Services have the version of an old SQL Server.
	version: `SELECT CASE WHEN CONVERT(int, SERVERPROPERTY('EngineEdition')) BETWEEN 1 AND 4 AND SERVERPROPERTY('Babelfish') IS NULL
	THEN CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion')) ELSE N'a service' END`,
	needs: needs{{"", "13"}},

	checks: []string{
		`SELECT N'DELAYED_DURABILITY of the database is FORCED: a crash of the server loses the last locks that it granted; set it to ALLOWED or DISABLED'
FROM sys.databases WHERE name = DB_NAME() AND delayed_durability = 2`,
	},

	code:   sqlServerCode,
	pauses: patient,
	errors: map[string]verdict{
		"1205":  {again: true},              // deadlock
		"1222":  {again: true, alone: true}, // lock time-out
		"3960":  {again: true},              // snapshot conflict
		"51222": {again: true},              // see together
		"208":   {final: missing},
		"2760":  {final: homeless},
		"911":   {final: homeless},
		"229":   {final: forbidden},
		"230":   {final: forbidden},
		"262":   {final: forbidden},
		"207":   {final: other},
		"102":   {final: old},
		"195":   {final: old},
		"3952":  {hint: "the connection is at snapshot isolation, which the database does not allow"},
		"3906":  {hint: writeless}, // the database is read-only
		"978":   {hint: writeless}, // a replica of which the URL wants only reads
		"983":   {hint: writeless}, // a replica that is being replaced, or is no primary
		"976":   {hint: writeless},
		"596":   {hint: ending}, // KILL
		"6005":  {hint: ending}, // shutdown
		"18401": {hint: ending}, // start
		"40197": {hint: ending}, // Azure: a failover
		"40613": {hint: ending}, // Azure: the database is not available
		"4060":  {hint: "there is no such database, or this user may not open it"},
		"18456": {hint: "the server does not let this user in: is the password right?"},
		"10928": {hint: crowded}, // Azure
		"10929": {hint: crowded},
		"40501": {hint: crowded}, // Azure: the server is busy
		"49918": {hint: crowded},
		"49919": {hint: crowded},
		"49920": {hint: crowded},
		"1105":  {hint: full}, // the data
		"9002":  {hint: full}, // the log
		"701":   {hint: exhausted},
		"1204":  {hint: exhausted}, // locks
	},
}

// moment is a time in microseconds since 1970 as a time for people. DATEADD takes numbers of 32 bits.
func moment(micros string) string {
	const day = "86400000000"
	return "DATEADD(microsecond, CONVERT(int, (" + micros + ") % 1000000), DATEADD(second, CONVERT(int, (" + micros + ") % " + day + " / 1000000), DATEADD(day, CONVERT(int, (" + micros + ") / " + day + "), CONVERT(datetime2(6), '19700101'))))"
}

// claimsView makes the view.
var claimsView = `CREATE VIEW {view} AS
SELECT t.title AS [key], JSON_VALUE(h.value, '$.public') AS id, 0 AS waiting, CONVERT(int, h.[key]) + 1 AS place,
	JSON_VALUE(h.value, '$.owner') AS owner, JSON_VALUE(h.value, '$.note') AS note,
	coalesce(CONVERT(bigint, JSON_VALUE(h.value, '$.fence')), t.fence - coalesce(CONVERT(bigint, JSON_VALUE(h.value, '$.span')), 1) + 1) AS fence,
	` + moment("coalesce(CONVERT(bigint, JSON_VALUE(h.value, '$.since')), t.since)") + ` AS since,
	` + moment("coalesce(CONVERT(bigint, JSON_VALUE(h.value, '$.until')), t.until)") + ` AS until,
	coalesce(CONVERT(bigint, JSON_VALUE(h.value, '$.weight')), CONVERT(bigint, {most})) AS weight, coalesce(CONVERT(bigint, JSON_VALUE(h.value, '$.limit')), CONVERT(bigint, {most})) AS capacity
FROM {table} t CROSS APPLY OPENJSON(t.claims, '$.held') h
WHERE t.name <> 0x AND coalesce(CONVERT(bigint, JSON_VALUE(h.value, '$.until')), t.until) > ` + serverClock + `
UNION ALL
SELECT t.title, JSON_VALUE(l.value, '$.public'), 1, CONVERT(int, l.[key]) + 1,
	JSON_VALUE(l.value, '$.owner'), JSON_VALUE(l.value, '$.note'), NULL,
	` + moment("CONVERT(bigint, JSON_VALUE(l.value, '$.since'))") + `,
	` + moment("CONVERT(bigint, JSON_VALUE(l.value, '$.until'))") + `,
	coalesce(CONVERT(bigint, JSON_VALUE(l.value, '$.weight')), CONVERT(bigint, {most})), coalesce(CONVERT(bigint, JSON_VALUE(l.value, '$.limit')), CONVERT(bigint, {most}))
FROM {table} t CROSS APPLY OPENJSON(t.claims, '$.line') l
WHERE t.name <> 0x AND CONVERT(bigint, JSON_VALUE(l.value, '$.until')) > ` + serverClock

// sqlServerCode is the number of an error. Babelfish has one number for whatever SQL Server
// does not know, and the text of PostgreSQL.
func sqlServerCode(err error) string {
	numbered := (interface {
		error
		SQLErrorNumber() int32
	})(nil)
	if !errors.As(err, &numbered) {
		return ""
	}
	switch number := numbered.SQLErrorNumber(); {
	case number == 2601:
		return "2627"
	case number != 33557097:
		return strconv.Itoa(int(number))
	}
	for _, like := range []struct{ begin, end, number string }{
		{"canceling statement due to lock timeout", "", "1222"},
		{"could not serialize access", "", "3960"},
		{"relation ", "does not exist", "208"},
		{"column ", "does not exist", "207"},
		{"schema ", "does not exist", "2760"},
		{"permission denied", "", "229"},
	} {
		text := strings.TrimPrefix(numbered.Error(), "mssql: ")
		if strings.HasPrefix(text, like.begin) && strings.Contains(text, like.end) {
			return like.number
		}
	}
	return ""
}
