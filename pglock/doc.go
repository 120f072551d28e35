// Package pglock is a store in PostgreSQL 12 or later, over pgx.
//
//	import _ "github.com/holdfast-go/holdfast/pglock"
//
//	locks, err := holdfast.Open(ctx, "postgres://app@db.example.com/app", nil)
//
// Also in this package:
//
//   - [New] makes a store from your own pool.
//   - [Session] is for locks that end with their connection.
//   - [LockTx] and [LockSQLTx] acquire a lock that ends with your transaction.
//   - [DoFenced] and [CheckFence] reject late writes by the holder of a lost lock.
//
// docs/guarding.md says when to use which.
//
// # How it works
//
// A lock is a lease: a row in a table, as package sqllock describes. Acquiring or
// releasing an uncontended lock is one statement with one commit, which many goroutines
// share: more connections than the default gain little. Waiters queue in the row. A release grants the lock to the next waiter, in the same step, and sends the
// grant itself by NOTIFY to the waiting client's own channel. No other client wakes, and
// no client polls. Without waiters nothing is sent. A client listens on one connection of
// its own, however many claims wait.
//
// Make the table once, by [Store.Create] or "holdfast init".
//
// # What it promises
//
//   - The promises of package sqllock.
//   - A waiter wakes within milliseconds. A notification that is lost, because the
//     connection was cut, costs a second.
//
// # What can go wrong
//
//   - The failures that package sqllock names: a standby that missed the last commits, a
//     server whose clock steps, rows deleted by hand.
//   - A pooler in transaction mode, such as PgBouncer, does not pass notifications on.
//     [New] and the URL recognize a pooler by the process id, which differs from the
//     server's. Waiters then poll, from every few milliseconds to every half a second,
//     unless ?listen= or Options.Listen names the server itself. Locks work the same;
//     with a pooler, statements are not prepared.
//   - NOTIFY takes a lock of the whole cluster until the commit is on disk, so a busy
//     queue slows other users of NOTIFY.
//
// # Permissions
//
// SELECT, INSERT, UPDATE and DELETE on the table; nothing else. [Store.Create] needs
// CREATE on the schema.
//
// # URL
//
//	postgres://user:password@host:port/database?parameters
//
//	table=holdfast   the table, or schema.table
//	listen=host:port the server to listen at, if host is a pooler
//	conns=4          the most connections for statements, 1 to 100. If there are
//	                 several, one is left to renewals and releases. pool_max_conns
//	                 is the same
//	mode=session     see [Session]
//	sslmode, sslrootcert, sslcert, sslkey, connect_timeout, target_session_attrs
//	                 and the rest that pgx reads, as in libpq. Without sslmode, a
//	                 server that is not on this machine must prove its name (verify-full),
//	                 unless PGSSLMODE says otherwise; a certificate that no authority
//	                 has signed, as at Heroku, needs sslmode=require. connect_timeout
//	                 is 5 seconds for each host.
//	application_name, options, role, search_path
//	                 settings of the server. Processes with different search_paths may
//	                 use different tables, and then do not exclude each other.
//
// A DATABASE_URL that is made for libpq or pgx works as it is. Settings for the
// statements of the application do not affect the store's statements, such as
// statement_timeout, default_transaction_read_only, synchronous_commit and timezone. Open
// warns of a URL that may send a password to another host unencrypted.
//
// Name a primary and its standbys as in libpq:
//
//	postgres://user:password@/database?host=db1,db2&port=5432,5433
//
// target_session_attrs is then read-write, so that the client finds a promoted standby; a
// host that does not answer costs connect_timeout. Parts that the URL omits come from the
// PG* environment variables and ~/.pgpass, as in psql.
package pglock
