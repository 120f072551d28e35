package sqlstore

import (
	"errors"
	"strconv"
	"time"
)

// SQLite is SQLite 3.38 or later, for the processes of one host. Use a client whose
// errors have a method Code. Package sqlitelock opens a file with the right settings, and
// wakes waiters.
var SQLite = &Dialect{
	name:      "SQLite",
	quote:     `"`,
	timeless:  true,
	clock:     `WITH clock (now) AS (VALUES (?)) `,
	now:       `(SELECT now FROM clock)`,
	greatest:  "max",
	returning: true,
	prepares:  true,
	oneWriter: true,
	// Not lasting: interrupting a statement is cheap here, and a statement that runs on
	// would block all other writers.

	// The only way to replace a view is to drop it and create it anew; a reader between
	// the two statements finds no view. SQL has the wall clock only.
	create: []string{`
CREATE TABLE IF NOT EXISTS {table} (
	name    TEXT    NOT NULL PRIMARY KEY,
	version INTEGER NOT NULL,
	format  INTEGER NOT NULL,
	fence   INTEGER NOT NULL,
	sole    TEXT    NOT NULL,
	since   INTEGER NOT NULL,
	until   INTEGER NOT NULL,
	claims  TEXT    NOT NULL
) WITHOUT ROWID`, `
DROP VIEW IF EXISTS {view}`, `
CREATE VIEW IF NOT EXISTS {view} AS
WITH claim AS (
	SELECT t.*, 0 AS waiting, j.key + 1 AS place, j.value AS c FROM {table} t, json_each(t.claims, '$.held') j
	UNION ALL
	SELECT t.*, 1, j.key + 1, j.value FROM {table} t, json_each(t.claims, '$.line') j
)
SELECT name AS key, c ->> 'public' AS id, waiting, place, c ->> 'owner' AS owner, c ->> 'note' AS note,
	CASE waiting WHEN 0 THEN coalesce(c ->> 'fence', fence - coalesce(c ->> 'span', 1) + 1) END AS fence,
	strftime('%Y-%m-%d %H:%M:%f', coalesce(c ->> 'since', since) / 1000000.0, 'unixepoch') AS since,
	strftime('%Y-%m-%d %H:%M:%f', coalesce(c ->> 'until', until) / 1000000.0, 'unixepoch') AS until,
	coalesce(c ->> 'weight', {most}) AS weight, coalesce(c ->> 'limit', {most}) AS capacity
FROM claim
WHERE name <> '' AND coalesce(c ->> 'until', until) > (julianday('now') - 2440587.5) * 86400000000`,
		floorRow + ` ON CONFLICT (name) DO NOTHING`,
	},
	insert: insertRow + ` ON CONFLICT (name) DO NOTHING`,

	takeSome: `UPDATE {table} SET version = {next}, fence = {token} + more, sole = id, since = {now}, until = {now} + ttl, claims = page
FROM (SELECT value ->> 'key' AS key, value ->> 'id' AS id, value ->> 'more' AS more, value ->> 'ttl' AS ttl, value ->> 'page' AS page FROM json_each(?)) AS asked
WHERE name = key AND until <= {now} AND fence BETWEEN 0 AND 9007199254739999 AND format = {format} RETURNING sole, fence, 0`,
	makeSome: `INSERT INTO {table} (name, version, format, fence, sole, since, until, claims)
SELECT value ->> 'key', {now}, {format}, {token} + (value ->> 'more'), value ->> 'id', {now}, {now} + (value ->> 'ttl'), value ->> 'page'
FROM json_each(?) CROSS JOIN (SELECT coalesce(max(fence), 0) AS fence FROM {table} WHERE name = '')
WHERE fence BETWEEN 0 AND 9007199254739999 ON CONFLICT (name) DO NOTHING RETURNING sole, fence, 1`,
	freeSome: `UPDATE {table} SET version = {next}, sole = '', until = {now}, claims = '{}'
FROM (SELECT value ->> 'key' AS key, value ->> 'id' AS id FROM json_each(?)) AS asked
WHERE name = key AND sole = id AND until > {now} AND format = {format} RETURNING name`,

	light:   "true",
	commits: "true",

	version: `SELECT sqlite_version()`,
	needs:   needs{{"", "3.38"}},

	code: sqliteCode,
	// A conflicting writer writes a single row. With growing pauses, an old caller would
	// lose against newcomers.
	pauses: pauses{200 * time.Microsecond, 2 * time.Millisecond, 2 * time.Millisecond},
	errors: map[string]verdict{
		"5":  {again: true}, // busy: another connection writes
		"6":  {again: true}, // locked: a connection that shares the cache writes
		"1":  {final: missing},
		"3":  {final: unwritable},
		"8":  {final: unwritable},
		"11": {final: "the file is damaged: restore it, or remove it while no process has it open"},
		"13": {hint: "the disk or the user's share of it is full: locks can be neither taken nor kept until there is room"},
		"14": {hint: "the file cannot be opened: does its folder exist, may this user write there, and are there file descriptors left?"},
		"26": {final: "the file is not a SQLite database: choose another path"},
	},
}

const unwritable = "this user may not write the file, what lies beside it with -wal and -shm at the end of its name, or the folder: let it write all of them"

// sqliteCode returns the primary code of an error: the higher bits add detail.
func sqliteCode(err error) string {
	if coded := (interface{ Code() int })(nil); errors.As(err, &coded) {
		return strconv.Itoa(coded.Code() & 0xff)
	}
	return ""
}
