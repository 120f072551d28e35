package sqllock

import (
	"errors"
	"strconv"
	"time"
)

// SQLite is SQLite 3.38 or later, for the processes of one host. Its clients'
// errors have a method Code. Package sqlitelock opens a file as it should be,
// and wakes claims in line.
var SQLite = &Dialect{
	name:      "SQLite",
	quote:     `"`,
	clock:     `WITH clock (now) AS (VALUES (?)) `,
	now:       `(SELECT now FROM clock)`,
	greatest:  "max",
	returning: true,
	prepares:  true,
	oneWriter: true,
	// Not lasting: to interrupt a statement is cheap here, and one that runs on would
	// keep the only writer from others.

	// There is no way to replace a view but to drop it; whoever reads it between
	// the two finds none. SQL has the wall clock only.
	create: []string{`
CREATE TABLE IF NOT EXISTS {table} (
	name    TEXT    NOT NULL PRIMARY KEY,
	version INTEGER NOT NULL,
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
	CASE waiting WHEN 0 THEN coalesce(c ->> 'fence', fence - (c ->> 'span') + 1) END AS fence,
	strftime('%Y-%m-%d %H:%M:%f', coalesce(c ->> 'since', since) / 1000000.0, 'unixepoch') AS since,
	strftime('%Y-%m-%d %H:%M:%f', coalesce(c ->> 'until', until) / 1000000.0, 'unixepoch') AS until,
	c ->> 'weight' AS weight, c ->> 'limit' AS capacity
FROM claim
WHERE name <> '' AND coalesce(c ->> 'until', until) > (julianday('now') - 2440587.5) * 86400000000`,
		floorRow + ` ON CONFLICT (name) DO NOTHING`,
	},
	insert: insertRow + ` ON CONFLICT (name) DO NOTHING`,

	commits: "true",

	version: `SELECT sqlite_version()`,
	needs:   needs{{"", "3.38"}},

	code: sqliteCode,
	// Whoever is in the way writes one row. What waits longer each time would
	// lose against those who come.
	pauses: pauses{200 * time.Microsecond, 2 * time.Millisecond, 2 * time.Millisecond},
	errors: map[string]verdict{
		"5":  {again: true}, // busy: another connection writes
		"6":  {again: true}, // locked: another that shares its cache writes
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

// sqliteCode is the primary code of an error: the bits above tell more.
func sqliteCode(err error) string {
	if coded := (interface{ Code() int })(nil); errors.As(err, &coded) {
		return strconv.Itoa(coded.Code() & 0xff)
	}
	return ""
}
