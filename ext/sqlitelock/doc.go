// Package sqlitelock is a store in a SQLite file, for the processes of one host,
// over modernc.org/sqlite. It needs no server and no operator.
//
//	import _ "github.com/holdfast-go/holdfast/ext/sqlitelock"
//
//	locks, err := holdfast.Open(ctx, "sqlite:///var/lib/app/locks.db", nil)
//
// With a database of your own, whose tables the locks guard: [New]. It needs the same
// client, which docs/design.md gives the reasons for.
//
// # How it works
//
// A lock is a lease: a row in a table, as package sqllock describes. The file and
// the table are made when they are missing. SQLite has one writer at a time:
// whoever finds it busy tries again after a random pause of up to 2 ms, until the
// context ends.
//
// Those who wait stand in line in the row. A release lets in the next in line,
// in the same step. On Linux every process that has somebody waiting hears of
// each write to the file, and elsewhere looks every 20 ms at the latest whether
// there was one; it then reads what has become of its own claims, and wakes only
// those that were let in.
//
// Leases are counted by the clock of the machine since it was started, its sleep
// included, from where the wall clock stood when the table was first used since.
// To set the clock changes nothing, but the times in the view holdfast_claims, as
// package sqllock says. Where the system has no such clock that all
// processes share, as outside Linux, it is the wall clock.
//
// # What it promises
//
//   - What package sqllock promises.
//   - A waiter that is woken within milliseconds. A wake that got lost costs a
//     second.
//   - Locks outlive processes and restarts of the machine: a lease ends when its
//     TTL is over, not when its holder dies. Package filelock frees the locks of
//     the dead at once.
//
// # What can go wrong
//
//   - The file is removed or replaced while it is open. Each call looks whether
//     it is still in its place; if not, it fails with an error that says so, the
//     locks are lost, and the store has to be closed and opened again. Until its
//     next renewal the holder does not know, and SQLite itself may damage a new
//     file at the same path meanwhile: replace it while no process has it open.
//   - What lies beside the file, with -wal and -shm at the end of its name, is
//     part of the database. Never remove or copy one without the other.
//   - The disk is full: locks are neither taken nor renewed, and errors say why.
//   - A power cut with synchronous=normal forgets what was granted last. All
//     holders have ended with it; tokens grow on, unless the clock comes up behind
//     them. synchronous=full waits for the disk at each commit.
//   - A file on a network file system, where SQLite cannot keep processes apart,
//     is refused.
//   - Another copy of SQLite in the same process, such as mattn/go-sqlite3, that
//     opens the same file, or any code that opens and closes it, undoes the locks
//     of this one. Other processes may use any SQLite.
//   - Break tells the holder at its next renewal, not at once.
//
// # Permissions
//
// Write access to the file, to what lies beside it, and to their folder. New
// files have what the umask leaves of 0644.
//
// # URL
//
//	sqlite:///path/to/file.db?parameters
//	sqlite:path/relative/to/here.db
//	sqlite:///C:/path/to/file.db
//
//	table=holdfast      the table
//	synchronous=normal  or full, which survives a power cut
package sqlitelock
