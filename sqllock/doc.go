// Package sqllock is a store in a table of a database: PostgreSQL, MySQL, MariaDB, SQLite
// or SQL Server, through database/sql and a client of your own.
//
//	store, err := sqllock.New(db, dialect.Postgres, nil)
//	// ...
//	err = store.Create(ctx) // once, as a user who may create tables
//	// ...
//	locks, err := holdfast.New(store, nil)
//
// Packages pglock, mysqllock, mssqllock and sqlitelock make a store from a URL, and wake waiters
// where the engine can. Prefer these packages if you can use their client.
//
// # How it works
//
// A key is a row: the highest fencing token given, the claims as JSON, and the time when
// the last of them has expired. A single statement acquires an uncontended key: an UPDATE
// under the condition that the row has expired. Otherwise the store reads the row,
// decides, and writes the row under the condition that the version is unchanged. If the
// version has changed, the store begins again. So every decision is one statement with a
// commit of its own, under any isolation level. No process holds a lock of the database
// while waiting or paused.
//
// After a Break, or a Release whose Acquire may still be on its way, the row keeps a
// tomb. The tomb refuses the claim's id for at least ten seconds, and the row does not
// expire sooner.
//
// Times are the server's. A lease begins when the server executes the request; the client
// counts from before sending. SQLite has no clock: there the time is the machine's.
//
// If many callers give up after milliseconds because the server is slow for a moment, the
// server gets no new connections on top. A statement that was sent runs to its end
// without the caller, on the same connection. In SQL Server this holds for all statements. SQLite
// interrupts the statement of a single call instead.
//
// Renewals of many claims are one statement. So are releases, if the engine returns the
// changed rows. In PostgreSQL and SQLite calls of many goroutines share statements, too: while
// up to three statements acquire keys, or two release keys (in SQLite one), further calls gather for
// the next statement.
//
// A waiter has a place in the row and no connection. A release grants the lock to the
// claims at the head of the queue, as long as they fit. The waiter retries after
// milliseconds at first, and every half a second in the end (holdfast.Options.Poll).
//
// # What people see
//
// The view named like the table, with _claims appended, has a row for each holder and
// waiter, like Locker.Holders:
//
//	SELECT key, owner, note, fence, since, until FROM holdfast_claims WHERE NOT waiting;
//
// In MySQL and MariaDB key is a reserved word and stands in backquotes, in SQL Server in brackets. In SQLite the
// view goes by the wall clock, and leases by the machine's clock. If the wall clock was
// set since the table was first used after the machine's start, the view is off by as
// much. The view then omits live claims or shows expired claims. Locker.Holders and
// "holdfast ls" are right. Grant people the view, not the table: a reader of the table
// sees the ids of claims, and an id is enough to release the lock of another process.
//
// # What it promises
//
//   - Mutual exclusion as long as the database keeps every commit and its clock does not
//     jump forward.
//   - FIFO order over all processes; readers do not pass a waiting writer.
//   - Fencing tokens that grow: microseconds of the server's clock, or the next number if
//     that is larger. Tokens grow through release, expiry, deletion of old rows, a crash,
//     and a restore from a dump. The condition: the clock is not further behind than the
//     dump is old. Tokens stay below 2^53, and lie in the same database as the guarded
//     data: see package fence.
//   - If the row of a lock vanishes, the holder learns of the loss at the next renewal.
//
// # What can go wrong
//
//   - Failover to a standby that missed the last commits: the standby may grant held
//     locks again. The first holder learns of the loss at the next renewal, and the
//     guarded data is safe if it checks the token. Synchronous replication prevents the
//     loss.
//   - A server clock that jumps forward ends leases early, by as much. A clock that goes
//     back lets leases stand longer.
//   - A crash of PostgreSQL, or a failover, may undo an Unlock of a key that nobody waits for,
//     if the Unlock was within three times wal_writer_delay before: 0.6 s by default. Such an
//     Unlock waits neither for the disk nor for a standby. The key is free when the TTL ends.
//   - A commit that does not wait for the disk (synchronous_commit = off,
//     innodb_flush_log_at_trx_commit other than 1): a crash loses the last grants. Check,
//     which holdfast.Open calls, warns of these settings.
//   - A connection without autocommit (autocommit = 0 in MySQL): no other client sees the
//     locks, but the locks block every client. Check warns of the setting.
//   - An open transaction that has changed the row of a key by hand: calls for the key
//     fail until the transaction ends. These calls do not occupy all connections: see
//     [New].
//   - In PostgreSQL, a transaction that stays open for hours keeps old versions of the
//     rows alive, and the table grows by about 280 bytes with each renewal meanwhile. Check
//     warns of a transaction that is older than an hour, if the user may see the age: of
//     transactions of its own role, or with the role pg_read_all_stats of all.
//
// # Errors
//
// The store retries deadlocks and serialization failures at once. If the table is missing
// or not writable, or the engine is too old, the error matches driver.ErrInvalid and says
// what to do. Any other error is returned as the client made it: a lost connection, a
// read-only standby, a failover, a full disk, too many connections. A waiting Lock
// tolerates such errors for up to the TTL. If the error comes from the server, the text
// says in words what the error means.
//
// # The table
//
// Rows without use for an hour are deleted now and then, by a process that adds rows. The
// row without a name keeps a token that is at least as high as the deleted tokens. The
// only index is the key's, and in PostgreSQL half of each page is left free, so that
// renewals need neither touch an index nor wait for VACUUM.
package sqllock
