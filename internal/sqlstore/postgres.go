package sqlstore

import "strings"

// Postgres is PostgreSQL 12 or later. Use any client of database/sql whose errors have a
// method SQLState, such as pgx and lib/pq. With package pglock waiters are woken; here
// waiters retry.
var Postgres = &Dialect{
	name:     "PostgreSQL",
	quote:    `"`,
	numbered: "$",
	// The clock of the moment, not of the transaction: a statement may have waited for a
	// row. extract computes with numeric, and takes longer.
	now:       `CAST(date_part('epoch', clock_timestamp()) * 1000000 AS bigint)`,
	greatest:  "greatest",
	returning: true,
	lasting:   true,

	// The only index is the key's, so that updates need not touch an index. Half of each
	// page is left for the next versions of its rows. LZ4, if PostgreSQL has it, halves the
	// processor time of a statement for a long queue. The table may be in use, and every statement
	// waits behind ALTER TABLE, so ALTER TABLE waits for a moment only; the next Create tries again.
	create: []string{`
CREATE TABLE IF NOT EXISTS {table} (
	name    text COLLATE "C" PRIMARY KEY,
	version bigint NOT NULL,
	format  int    NOT NULL,
	fence   bigint NOT NULL,
	sole    text   NOT NULL,
	since   bigint NOT NULL,
	until   bigint NOT NULL,
	claims  jsonb  NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`, `
DO $lz4$ DECLARE
	patience text := current_setting('lock_timeout');
BEGIN
	IF EXISTS (SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
		IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = CAST('{table}' AS regclass) AND attname = 'claims' AND attcompression <> 'l') THEN
			PERFORM set_config('lock_timeout', '200ms', true);
			EXECUTE 'ALTER TABLE {table} ALTER claims SET COMPRESSION lz4';
			PERFORM set_config('lock_timeout', patience, true);
		END IF;
	END IF;
EXCEPTION WHEN lock_not_available THEN
	NULL;
END $lz4$`, `
CREATE OR REPLACE VIEW {view} AS
SELECT
	t.name AS key,
	c.claim ->> 'public' AS id,
	c.waiting,
	c.place,
	c.claim ->> 'owner' AS owner,
	c.claim ->> 'note' AS note,
	CASE WHEN NOT c.waiting THEN coalesce(CAST(c.claim ->> 'fence' AS bigint), t.fence - coalesce(CAST(c.claim ->> 'span' AS bigint), 1) + 1) END AS fence,
	to_timestamp(coalesce(CAST(c.claim ->> 'since' AS bigint), t.since) / 1000000.0) AS since,
	to_timestamp(coalesce(CAST(c.claim ->> 'until' AS bigint), t.until) / 1000000.0) AS until,
	coalesce(CAST(c.claim ->> 'weight' AS bigint), {most}) AS weight,
	coalesce(CAST(c.claim ->> 'limit' AS bigint), {most}) AS capacity
FROM {table} t CROSS JOIN LATERAL (
	SELECT claim, false AS waiting, place FROM jsonb_array_elements(t.claims -> 'held') WITH ORDINALITY AS h (claim, place)
	UNION ALL
	SELECT claim, true, place FROM jsonb_array_elements(t.claims -> 'line') WITH ORDINALITY AS l (claim, place)
) c
WHERE t.name <> '' AND coalesce(CAST(c.claim ->> 'until' AS bigint), t.until) > {now}`,
		floorRow + ` ON CONFLICT (name) DO NOTHING`,
	},
	// IF NOT EXISTS does not separate two concurrent creators.
	together: `DO $holdfast$ BEGIN
PERFORM pg_advisory_xact_lock(hashtext('holdfast create'));
{create};
END $holdfast$`,
	insert: insertRow + ` ON CONFLICT (name) DO NOTHING`,
	publish: `WITH won AS ({update} RETURNING 1)
SELECT count(pg_notify(m ->> 'to', m ->> 'text')) FROM won, jsonb_array_elements(CAST(? AS jsonb)) AS m`,

	// Each key is looked up by itself, as in other statements. A join would be planned as a scan of the
	// whole table while the table is small, and stay so while the table grows. New rows are inserted in the order of their names, because an insert waits for
	// the end of another insert of the same name.
	takeSome: `WITH asked AS MATERIALIZED (
	SELECT * FROM jsonb_to_recordset(CAST(? AS jsonb)) AS a (key text COLLATE "C", id text, more bigint, ttl bigint, page jsonb)
), free AS MATERIALIZED (
	SELECT place FROM asked CROSS JOIN LATERAL (SELECT ctid AS place FROM {table} WHERE name = key AND until <= {now} FOR UPDATE SKIP LOCKED) AS row
), updated AS (
	UPDATE {table} SET version = {next}, fence = {token} + more, sole = id, since = {now}, until = {now} + ttl, claims = page
	FROM asked WHERE ctid = ANY (ARRAY(SELECT place FROM free)) AND name = key AND until <= {now} AND fence BETWEEN 0 AND 9007199254739999 AND format = {format}
	RETURNING sole, fence, 0 AS inserted
), inserted AS (
	INSERT INTO {table} (name, version, format, fence, sole, since, until, claims)
	SELECT key, {now}, {format}, {token} + more, id, {now}, {now} + ttl, page
	FROM asked CROSS JOIN (SELECT coalesce(max(fence), 0) AS fence FROM {table} WHERE name = '') AS floor
	WHERE fence BETWEEN 0 AND 9007199254739999 AND (SELECT version FROM {table} WHERE name = key) IS NULL ORDER BY key
	ON CONFLICT (name) DO NOTHING RETURNING sole, fence, 1
)
SELECT * FROM updated UNION ALL SELECT * FROM inserted`,
	freeSome: `WITH asked AS MATERIALIZED (
	SELECT * FROM jsonb_to_recordset(CAST(? AS jsonb)) AS a (key text COLLATE "C", id text)
), held AS MATERIALIZED (
	SELECT place FROM asked CROSS JOIN LATERAL (SELECT ctid AS place FROM {table} WHERE name = key AND sole = id AND until > {now} FOR UPDATE SKIP LOCKED) AS row
)
UPDATE {table} SET version = {next}, sole = '', until = {now}, claims = '{}'
FROM asked WHERE ctid = ANY (ARRAY(SELECT place FROM held)) AND name = key AND sole = id AND until > {now} AND format = {format} AND {light}
RETURNING name`,

	// A change of jsonb writes all of it anew, so each statement has as few as possible.
	join: `UPDATE {table} SET version = {next}, until = greatest(until, {now} + ?), claims = jsonb_insert(
	CASE WHEN claims -> 'line' IS NULL THEN jsonb_set(claims, '{line}', '[]') ELSE claims END, '{line,-1}',
	CAST(? AS jsonb) || jsonb_build_object('since', {now},
	'until', {now} + least(CAST(? AS bigint) * (1 + coalesce(jsonb_array_length(claims -> 'line'), 0) / {crowd}), ?) + ?), true)
WHERE name = ? AND until > {now} AND sole = '' AND jsonb_path_match(claims, '$.*[*].id == $id', jsonb_build_object('id', CAST(? AS text))) IS NOT TRUE AND format = {format} AND {light}`,

	glance: strings.Replace(loadRow, "l.claims", two("l.claims", "coalesce(nullif(own.place, 0), jsonb_array_length(l.claims -> 'line') - 1)"), 1) + `
CROSS JOIN LATERAL (SELECT CAST(min(place) - 1 AS int) AS place
	FROM jsonb_array_elements(CASE WHEN jsonb_typeof(l.claims -> 'line') = 'array' THEN l.claims -> 'line' END) WITH ORDINALITY AS w (c, place)
	WHERE c ->> 'id' = ?) AS own`,
	joined: strings.Replace(returnRow, "claims", two("claims", "(jsonb_array_length(claims -> 'line') - 1)"), 1),

	stay: `UPDATE {table} SET version = {next}, until = greatest(until, {now} + ?), claims = jsonb_set(claims, ARRAY['line', (
	SELECT CAST(min(place - 1) AS text) FROM jsonb_array_elements(claims -> 'line') WITH ORDINALITY AS l (c, place) WHERE c ->> 'id' = ?)],
	CAST(? AS jsonb) || jsonb_build_object('until', {now} + ?))
WHERE name = ? AND jsonb_path_match(claims, '$.line[*].id == $id', jsonb_build_object('id', CAST(? AS text))) AND format = {format} AND {light}`,

	// A crash may bring back a place whose release was answered. Nobody asks for the place, so
	// the place ends by itself.
	leave: `UPDATE {table} SET version = {next}, claims = claims #- ARRAY['line', (
	SELECT CAST(min(place - 1) AS text) FROM jsonb_array_elements(claims -> 'line') WITH ORDINALITY AS l (c, place) WHERE c ->> 'id' = ?)]
WHERE name = ? AND jsonb_path_match(claims, '$.line[1 to last].id == $id', jsonb_build_object('id', CAST(? AS text))) AND format = {format} AND {light}`,

	extend: `UPDATE {table} SET version = {next}, until = greatest(until, {now} + ?), claims = jsonb_set(claims, '{held}', (
	SELECT jsonb_agg(CASE WHEN c ->> 'id' = ? THEN c || jsonb_build_object('until', {now} + ?) ELSE c END ORDER BY place)
	FROM jsonb_array_elements(claims -> 'held') WITH ORDINALITY AS h (c, place)))
WHERE name = ? AND EXISTS (SELECT FROM jsonb_array_elements(claims -> 'held') AS h (c) WHERE c ->> 'id' = ? AND CAST(c ->> 'until' AS bigint) > {now})
	AND NOT claims -> 'held' @> jsonb_build_array(jsonb_build_object('id', CAST(? AS text), 'left', true)) AND format = {format}`,

	handOver: `UPDATE {table} SET version = {next}, fence = ?, until = greatest(until, ?),
	claims = jsonb_set(claims #- '{line,0}', '{held}', jsonb_build_array(CAST(? AS jsonb)))
WHERE name = ? AND fence = ? AND jsonb_array_length(claims -> 'held') = 1 AND claims #>> '{held,0,id}' = ? AND claims #>> '{line,0,id}' = ?
	AND coalesce(claims #>> '{line,0,to}', '') = ? AND format = {format}`,

	// The write of a grant waits for the disk, and so for earlier writes.
	light: `set_config('synchronous_commit', 'off', true) = 'off'`,

	commits: "true", // A client that begins a transaction begins it by a statement.

	version: `SELECT current_setting('server_version')`,
	needs:   needs{{"", "12"}},

	checks: []string{
		`SELECT 'fsync is off: a crash of the server may bring back locks that were released, and lose some that are held; set it on'
WHERE current_setting('fsync') = 'off'`,
		`SELECT 'synchronous_commit is off: a crash of the server loses the last locks that it granted; set it on for this role'
WHERE current_setting('synchronous_commit') = 'off'`,
		`SELECT 'the table is UNLOGGED: a crash of the server loses all locks; ALTER TABLE ... SET LOGGED'
FROM pg_class WHERE oid = CAST('{table}' AS regclass) AND relpersistence = 'u'`,
		// A user sees the age of the transactions of roles to which the user belongs. VACUUM
		// keeps no rows of other tables.
		`SELECT format('the transaction of process %s, of user %s, has been open for %s h: the server keeps every version of the rows written since, and the table grows with each renewal; end the transaction',
	pid, usename, CAST(extract(epoch FROM clock_timestamp() - xact_start) AS int) / 3600)
FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
	AND coalesce(backend_xid, backend_xmin) IS NOT NULL AND xact_start < clock_timestamp() - interval '1 hour'
	AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
ORDER BY xact_start LIMIT 1`,
	},
	code:   sqlState,
	pauses: patient,
	errors: map[string]verdict{
		"40001": {again: true, alone: true}, // serialization failure
		"40P01": {again: true, alone: true}, // deadlock
		"42P01": {final: missing},
		"22P05": {final: encoding, alone: true},
		"22021": {final: encoding, alone: true},
		"54000": {alone: true}, // a key too long for the index
		"3F000": {final: homeless},
		"42501": {final: forbidden},
		"42703": {final: other},
		"42883": {final: old},
		"42601": {final: old},
		"25006": {hint: writeless}, // a standby, or default_transaction_read_only
		"57P01": {hint: ending},    // shutdown, or pg_terminate_backend
		"57P02": {hint: ending},    // a crash of another connection
		"57P03": {hint: ending},    // the server cannot accept connections now
		"53300": {hint: crowded},
		"53100": {hint: full},
		"53200": {hint: exhausted},
	},
}

// two returns the claims in a column with two claims of the queue: the first, and one with this
// index. The weight of a claim that wants the whole key is left out, see [claim].
func two(column, index string) string {
	return strings.NewReplacer("{c}", column, "{i}", index).Replace(`CASE WHEN jsonb_typeof({c} -> 'line') = 'array' AND {c} #> '{line,2}' IS NOT NULL
	AND {c} #> '{line,0,weight}' IS NULL AND {c} #> '{held,0}' IS NOT NULL AND {c} #> '{held,1}' IS NULL AND {c} -> 'phase' IS NULL
THEN jsonb_build_object('held', {c} -> 'held', 'tombs', {c} -> 'tombs', 'line', jsonb_build_array({c} #> '{line,0}', {c} -> 'line' -> {i}),
	'part', true, 'omitted', {i} - 1) ELSE {c} END`)
}
