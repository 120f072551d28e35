// Package sqlitelock is a store in a SQLite file, for the processes of one host,
// over modernc.org/sqlite. It needs no server and no operator.
//
//	import _ "github.com/holdfast-go/holdfast/sqlitelock"
//
//	locks, err := holdfast.Open(ctx, "sqlite:///var/lib/app/locks.db", nil)
//
// To use your own database, with tables guarded by the locks: [New]. The database must be
// opened with modernc.org/sqlite; docs/design.md gives the reasons.
//
// # How it works
//
// A lock is a lease: a row in a table, as package sqllock describes. The file and the table
// are created if missing. SQLite has one writer at a time. If SQLite is busy, the store
// retries after a random pause of up to 2 ms, until the context ends.
//
// Waiters queue in the row. A release grants the lock to the next waiter in the queue, in
// the same step. On Linux, every process with a waiter is notified of each write to the
// file. On other systems, the process polls for writes, at least every 20 ms. After a
// write, the process reads the state of its own claims, and wakes only the waiters with a
// grant.
//
// Leases are measured by a clock of the machine that nobody can set and that includes its
// sleep. The count begins at what the wall clock showed when the table was first used since
// the machine was started. Setting the wall clock changes only the times in the view
// holdfast_claims, as package sqllock says. If the system has no such clock shared by all
// processes, as outside Linux, leases are measured by the wall clock.
//
// # What it promises
//
//   - What package sqllock promises.
//   - A waiter is woken within milliseconds. A lost wake costs a second.
//   - Locks outlive processes and restarts of the machine: a lease ends when its TTL is
//     over, not when its holder dies. Package filelock frees the locks of dead processes at
//     once.
//
// # What can go wrong
//
//   - The file is removed or replaced while open. Each call checks that the file is still
//     in place. If it is not, the locks are lost, and the call fails with an error that says
//     so. Close the store and open it again. The holder does not know until the next
//     renewal. SQLite itself may damage a new file at the same path meanwhile: replace the
//     file only while no process has it open.
//   - The files beside the database, with -wal and -shm at the end of their names, are part
//     of the database. Never remove or copy one without the others.
//   - The disk is full: locks are neither acquired nor renewed, and errors give the reason.
//   - A power cut with synchronous=normal loses the latest grants. Every holder has ended
//     with the power. Tokens still grow, unless the clock comes up behind them.
//     synchronous=full waits for the disk at each commit.
//   - A file on a network file system is refused: SQLite cannot keep processes apart there.
//   - A second copy of SQLite in the same process, such as mattn/go-sqlite3, that opens the
//     same file undoes the locks of this store. Code in the process that opens and closes
//     the file does the same. Other processes may use any SQLite.
//   - Break notifies the holder at the next renewal, not at once.
//
// # Permissions
//
// Write access to the file, to the files beside the database, and to the folder. New files
// have mode 0644 less the umask.
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
