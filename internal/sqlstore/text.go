package sqlstore

import "strings"

// The statements common to all engines. {now} is the engine's clock; {next} is the next
// version of a row, and {token} the next token; {keep} is a function that keeps a token for
// the caller, or nothing. {none} is the name without letters. {format} is the format of the
// rows: a statement that does not read a row before it writes the row leaves other formats
// alone. {seek} and {by name} let UPDATE and SELECT touch no rows but those that they name.
const (
	// acquireRow acquires a row in which everything has expired.
	acquireRow = `UPDATE {table} SET version = {next}, fence = {keep}({token} + ?), sole = ?, since = {now}, until = {now} + ?, claims = ?{seek}
WHERE name = ? AND until <= {now} AND {commits} AND fence BETWEEN 0 AND 9007199254739999 AND format = {format}`

	// renewRows and releaseRows are for rows with a sole claim. With {light}, a crash may undo a
	// release that was answered. Nobody renews the claim, so the claim ends with its TTL.
	renewRows = `UPDATE {table} SET version = {next}, until = {now} + ?{seek}
WHERE name IN (?...) AND sole IN (?...) AND until > {now} AND format = {format}`
	releaseRows = `UPDATE {table} SET version = {next}, sole = {none}, until = {now}, claims = '{}'{seek}
WHERE name IN (?...) AND sole IN (?...) AND until > {now} AND format = {format} AND {light}`

	// soleRows returns the names of rows with a sole claim.
	soleRows = `SELECT name FROM {table}{by name} WHERE name IN (?...) AND sole IN (?...) AND until > {now} AND format = {format}`

	// loadRow always returns one row. The row without a name has the highest token of all
	// keys whose row was deleted.
	loadRow = `SELECT {now}, CASE WHEN {commits} THEN 1 ELSE 0 END, f.fence, l.version, l.format, l.fence, l.sole, l.since, l.until, l.claims
FROM (SELECT 1 AS one) o LEFT JOIN {table} f ON f.name = {none} LEFT JOIN {table} l ON l.name = ?`

	// returnRow returns the columns of loadRow.
	returnRow = ` RETURNING {now}, 1, 0, version, format, fence, sole, since, until, claims`

	floorRow  = `INSERT INTO {table} (name, version, format, fence, sole, since, until, claims) VALUES ({none}, 1, {format}, 0, {none}, 0, 0, '{}')`
	insertRow = `INSERT INTO {table} (name, version, format, fence, sole, since, until, claims) VALUES (?, ?, {format}, ?, ?, ?, ?, ?)`
	updateRow = `UPDATE {table} SET version = {next}, fence = ?, sole = ?, since = ?, until = ?, claims = ?{seek} WHERE name = ? AND version = ?`
	lightRow  = updateRow + ` AND {light}`

	listRows = `SELECT {top 500} {now}, name, version, format, fence, sole, since, until, claims FROM {table}
WHERE name >= ? AND name <> {none} AND (until > {now} OR format <> {format}) ORDER BY name {limit 500}`

	someRows = `SELECT {now}, name, version, format, fence, sole, since, until, claims FROM {table}{by name} WHERE name IN (?...)`

	// The row of a boot has the boot's beginning in since, see now.
	readBoot  = `SELECT since FROM {table} WHERE name = ?`
	writeBoot = `INSERT INTO {table} (name, version, format, fence, sole, since, until, claims)
SELECT ?, 1, {format}, 0, '', max(?, coalesce(max(since), 0)) - ?, 9223372036854775807, '{}' FROM {table} WHERE true ON CONFLICT (name) DO NOTHING`

	// Rows without use for an hour are deleted; the highest of their tokens stays.
	idleRows   = `SELECT {top 1000} name, fence FROM {table} WHERE until < {now} - 3600000000 AND name <> {none} AND format = {format} {limit 1000}`
	raiseFloor = `UPDATE {table} SET version = version + 1, fence = CASE WHEN fence < ? THEN ? ELSE fence END WHERE name = {none}`
	deleteRows = `DELETE FROM {table} WHERE name IN (?...) AND until < {now} - 3600000000 AND fence <= ? AND format = {format}`
)

// expand gives a statement lists of n parameters.
func expand(text string, n int) string {
	return strings.ReplaceAll(text, "?...", strings.Repeat("?, ", n-1)+"?")
}
