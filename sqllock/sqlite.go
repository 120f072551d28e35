package sqllock

import (
	"errors"
	"strconv"
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
CREATE VIEW IF NOT EXISTS {view} AS
WITH claim AS (
	SELECT t.*, 0 AS waiting, j.key + 1 AS place, j.value AS c FROM {table} t, json_each(t.claims, '$.held') j
	UNION ALL
	SELECT t.*, 1, j.key + 1, j.value FROM {table} t, json_each(t.claims, '$.line') j
)
SELECT name AS key, c ->> 'public' AS id, waiting, place, c ->> 'owner' AS owner, c ->> 'note' AS note,
	CASE waiting WHEN 0 THEN coalesce(c ->> 'fence', fence - (c ->> 'span') + 1) END AS fence,
	datetime(coalesce(c ->> 'since', since) / 1000000, 'unixepoch') AS since,
	datetime(coalesce(c ->> 'until', until) / 1000000, 'unixepoch') AS until,
	c ->> 'weight' AS weight, c ->> 'limit' AS capacity
FROM claim
WHERE name <> '' AND coalesce(c ->> 'until', until) > CAST(strftime('%s', 'now') AS INTEGER) * 1000000`,
		floorRow + ` ON CONFLICT (name) DO NOTHING`,
	},
	insert: insertRow + ` ON CONFLICT (name) DO NOTHING`,

	commits: "true",

	version: `SELECT sqlite_version()`,
	needs:   needs{{"", "3.38"}},

	code: sqliteCode,
	errors: map[string]verdict{
		"5":   {again: true}, // busy: another process writes
		"517": {again: true}, // busy: another has written since the statement began
		"6":   {again: true}, // locked: another connection of this process writes
		"1":   {final: missing},
		"8":   {final: forbidden},
	},
}

func sqliteCode(err error) string {
	if coded := (interface{ Code() int })(nil); errors.As(err, &coded) {
		return strconv.Itoa(coded.Code())
	}
	return ""
}
