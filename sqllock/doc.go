// Package sqllock is a store in a table of a database: PostgreSQL, MySQL,
// MariaDB or SQLite, through database/sql and a client of your own.
//
//	store := sqllock.New(db, sqllock.Postgres, nil)
//	err := store.Create(ctx) // once, as a user who may create tables
//	locks := holdfast.New(store, nil)
//
// Packages pglock, mysqllock and sqlitelock make one from a URL, and wake those
// who wait where the engine can; prefer them where their client is yours.
//
// # How it works
//
// A key is a row: when the last of what it tells of runs out, the highest
// fencing token given, and the claims as JSON. Whoever wants a key that nobody
// has updates the row in one statement, under the condition that it has run
// out. All else reads the row, decides, and writes it under the condition that
// its version is still the same; otherwise it begins again. So every decision
// is one statement with a commit of its own, under any isolation level, and
// nobody holds a lock of the database while it waits for anything, or pauses.
//
// Times are the server's. A lease begins when the server executes the request;
// the client counts from before it was sent. SQLite has no clock of its own:
// there it is that of the machine.
//
// Where many give up after milliseconds, as the server is slow for a moment, it gets no
// new connections to make on top: what a caller has sent comes to its end without the
// caller, over the connection that it has. SQLite is asked to stop instead.
//
// Renewals of many claims are one statement. So are releases, where the engine
// tells which rows it changed.
//
// Who waits has a place in the row and no connection. A release lets in the
// first in line that fits. With [Store.Pushing] it is told at once; otherwise it
// asks again after milliseconds at first, and every half a second in the end
// (holdfast.Options.Poll).
//
// # What people see
//
// The view with the name of the table and _claims has a line for each claim
// that holds or waits, as Locker.Holders has it:
//
//	SELECT key, owner, note, fence, since, until FROM holdfast_claims WHERE NOT waiting;
//
// In MySQL and MariaDB key is a reserved word and stands in backquotes. In SQLite
// the view goes by the wall clock, and leases by that of the machine: if the wall
// clock was set since the table was first used after the machine's start, the view
// is off by as much, and leaves out claims that stand or shows some that have run
// out. Locker.Holders and "holdfast ls" are right.
// Whoever may read the table itself can read the ids of claims, and with one
// release another's lock; grant people the view.
//
// # What it promises
//
//   - Mutual exclusion as long as the database keeps what it has committed and
//     its clock does not jump forward.
//   - First come, first served, over all processes; readers do not pass a writer
//     that waits.
//   - Fencing tokens that grow: microseconds of the server's clock, or the next
//     number if that is larger. They grow through release, expiry, deletion of
//     old rows, a crash, and a restore from a dump, as long as the clock is not
//     further behind than the dump is old. They stay below 2^53, and lie in the
//     same database as the data that they guard: see package fence.
//   - A lock whose row has vanished is lost to its holder at its next renewal.
//
// # What can go wrong
//
//   - Failover to a standby that missed the last commits: it may grant again what
//     is held. The holder learns of it at its next renewal, and what it guards is
//     safe if it checks the token. With synchronous replication it cannot happen.
//   - A server clock that jumps forward ends leases early, by as much. One that
//     goes back lets them stand longer.
//   - A commit that does not wait for the disk (synchronous_commit = off,
//     innodb_flush_log_at_trx_commit other than 1): a crash forgets the last
//     grants. Check, which holdfast.Open asks, warns of it.
//   - A connection that does not commit by itself (autocommit = 0 in MySQL): its
//     locks are seen by nobody, and in everybody's way. Check warns of it.
//   - An open transaction that has changed the row of a key by hand: calls for the
//     key fail until it ends. They do not have all connections that there are: see
//     [New].
//   - In PostgreSQL a transaction that stays open for hours keeps old versions of
//     the rows alive, and the table grows with each renewal meanwhile.
//
// # Errors
//
// Deadlocks and serialization failures are tried again at once. A table that is
// missing or may not be written, and an engine that is too old, match
// driver.ErrInvalid and say what would be right. Anything else is returned as the
// client made it, and who waits rides it out for up to the TTL: a lost connection,
// a standby that only reads, a failover, a full disk, too many connections. Of
// those that the server tells, the error says in words what they mean.
//
// # The table
//
// Rows that nobody has wanted for an hour are deleted now and then, by whoever
// adds others. A token that is as high as theirs stays in the row without a
// name. There is no index but the key's, and in PostgreSQL half of each page is
// left free, so that renewals need not touch an index nor wait for VACUUM.
package sqllock
