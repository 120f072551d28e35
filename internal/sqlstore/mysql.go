package sqlstore

import (
	"errors"
	"strings"
)

// MySQL is MySQL 8 or MariaDB 10.6, or later. Use any client of database/sql whose errors
// begin like "Error 1213", such as go-sql-driver.
var MySQL = &Dialect{
	name:  "MySQL",
	quote: "`",
	// The clock as of the start of the statement. The clock knows no time zone, so no
	// hour comes twice, and a server may be told to have no other clock. A statement that
	// has waited for a row therefore grants less time than possible.
	now:      "timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(6))",
	greatest: "greatest",
	keep:     "last_insert_id",
	prepares: true,
	lasting:  true,

	// The name is binary, because the collations treat Job, job and 'Job ' as the same.
	create: []string{`
CREATE TABLE IF NOT EXISTS {table} (
	name    varbinary(1024) NOT NULL PRIMARY KEY,
	version bigint NOT NULL,
	format  int    NOT NULL,
	fence   bigint NOT NULL,
	sole    varbinary(1024) NOT NULL,
	since   bigint NOT NULL,
	until   bigint NOT NULL,
	claims  json   NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4`, `
CREATE OR REPLACE VIEW {view} AS
SELECT CONVERT(t.name USING utf8mb4) AS ` + "`key`" + `, h.id, 0 AS waiting, h.place, h.owner, h.note,
	coalesce(h.fence, t.fence - coalesce(h.span, 1) + 1) AS fence,
	from_unixtime(coalesce(h.since, t.since) / 1000000) AS since,
	from_unixtime(coalesce(h.until, t.until) / 1000000) AS until,
	coalesce(h.weight, {most}) AS weight, coalesce(h.capacity, {most}) AS capacity
FROM {table} t CROSS JOIN json_table(t.claims, '$.held[*]' COLUMNS (` + claimColumns + `)) h
WHERE t.name <> '' AND coalesce(h.until, t.until) > {now}
UNION ALL
SELECT CONVERT(t.name USING utf8mb4), l.id, 1, l.place, l.owner, l.note, NULL,
	from_unixtime(l.since / 1000000), from_unixtime(l.until / 1000000), coalesce(l.weight, {most}), coalesce(l.capacity, {most})
FROM {table} t CROSS JOIN json_table(t.claims, '$.line[*]' COLUMNS (` + claimColumns + `)) l
WHERE t.name <> '' AND l.until > {now}`,
		floorRow + ` ON DUPLICATE KEY UPDATE version = version`,
	},
	insert: insertRow,
	join: `UPDATE {table} SET version = {next}, until = greatest(until, {now} + ?), claims = json_merge_preserve(claims,
	json_object('line', json_array(json_set(?, '$.since', {now},
	'$.until', {now} + least(? * (1 + coalesce(json_length(claims, '$.line'), 0) DIV {crowd}), ?) + ?))))
WHERE name = ? AND until > {now} AND sole = '' AND json_search(claims, 'one', ?, NULL, '$.*[*].id') IS NULL AND {commits} AND format = {format}`,
	stay: `UPDATE {table} SET version = {next}, until = greatest(until, {now} + ?), claims = json_set(claims,
	replace(json_unquote(json_search(claims, 'one', ?, NULL, '$.line[*].id')), '.id', ''), json_set(?, '$.until', {now} + ?))
WHERE name = ? AND json_search(claims, 'one', ?, NULL, '$.line[*].id') IS NOT NULL AND format = {format}`,
	leave: `UPDATE {table} SET version = {next}, claims = json_remove(claims,
	replace(json_unquote(json_search(claims, 'one', ?, NULL, '$.line[*].id')), '.id', ''))
WHERE name = ? AND json_unquote(json_search(claims, 'one', ?, NULL, '$.line[*].id')) <> '$.line[0].id' AND format = {format}`,
	extend: `UPDATE {table} SET version = {next}, until = greatest(until, {now} + ?), claims = json_set(claims,
	replace(json_unquote(json_search(claims, 'one', ?, NULL, '$.held[*].id')), 'id', 'until'), {now} + ?)
WHERE name = ? AND json_extract(claims, replace(json_unquote(json_search(claims, 'one', ?, NULL, '$.held[*].id')), 'id', 'until')) > {now}
	AND NOT json_contains(claims, json_set('{"left": true}', '$.id', ?), '$.held') AND format = {format}`,
	handOver: `UPDATE {table} SET version = {next}, fence = ?, until = greatest(until, ?),
	claims = json_set(json_remove(claims, '$.line[0]'), '$.held', json_array(json_extract(?, '$')))
WHERE name = ? AND fence = ? AND json_length(claims, '$.held') = 1 AND json_unquote(json_extract(claims, '$.held[0].id')) = ?
	AND json_unquote(json_extract(claims, '$.line[0].id')) = ?
	AND coalesce(json_unquote(json_extract(claims, '$.line[0].to')), '') = ? AND format = {format}`,
	light:     "true",
	commits:   "@@autocommit = 1",
	duplicate: "1062",

	version: `SELECT version()`,
	needs:   needs{{"MariaDB", "10.6"}, {"", "8.0"}},

	checks: []string{
		`SELECT 'innodb_flush_log_at_trx_commit is not 1: a crash of the server loses the last locks that it granted; set it to 1'
FROM dual WHERE @@innodb_flush_log_at_trx_commit <> 1`,
	},
	code:   mysqlCode,
	pauses: patient,
	errors: map[string]verdict{
		"1213": {again: true}, // deadlock
		"1205": {again: true}, // lock wait timeout
		"1020": {again: true}, // MariaDB: the row has changed since the snapshot
		"1146": {final: missing},
		"1049": {final: homeless},
		"1142": {final: forbidden},
		"1044": {final: forbidden},
		"1054": {final: other},
		"1064": {final: old},
		"1290": {hint: writeless}, // read_only, or another option that prevents the statement
		"1836": {hint: writeless}, // super_read_only, innodb_read_only
		"1792": {hint: writeless}, // the transaction is READ ONLY
		"1053": {hint: ending},    // shutdown
		"1927": {hint: ending},    // MariaDB: the connection was killed
		"1317": {hint: ending},    // the statement was killed
		"1040": {hint: crowded},   // max_connections
		"1203": {hint: crowded},   // max_user_connections
		"1226": {hint: crowded},   // a limit of the user's account
		"1114": {hint: full},      // the table or its space
		"1021": {hint: full},      // the disk
		"1037": {hint: exhausted},
		"1041": {hint: exhausted},
	},
}

// claimColumns name their character set, because the default is the database's.
const claimColumns = `place FOR ORDINALITY,
	id varchar(16) PATH '$.public', owner varchar(2048) CHARACTER SET utf8mb4 PATH '$.owner', note varchar(2048) CHARACTER SET utf8mb4 PATH '$.note',
	fence bigint PATH '$.fence', span bigint PATH '$.span', since bigint PATH '$.since', until bigint PATH '$.until',
	weight bigint PATH '$.weight', capacity bigint PATH '$.limit'`

// mysqlCode reads "Error 1213 (40001): Deadlock found ...".
func mysqlCode(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		if rest, ok := strings.CutPrefix(err.Error(), "Error "); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
			if end > 0 {
				return rest[:end]
			}
		}
	}
	return ""
}
