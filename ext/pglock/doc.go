// Package pglock is a store in PostgreSQL 12 or later, over pgx.
//
//	import _ "github.com/holdfast-go/holdfast/ext/pglock"
//
//	locks, err := holdfast.Open(ctx, "postgres://app@db.example.com/app", nil)
//
// With a pool of your own: [New]. Locks that end with their connection: [Session].
// Inside a transaction of your own: [LockTx] and
// [LockSQLTx] take a lock that ends with it, and [CheckFence] refuses what the
// holder of a lost lock would still write. docs/guarding.md says when to use
// which.
//
// # How it works
//
// A lock is a lease: a row in a table, as package sqllock describes. To take or
// to release a lock that nobody else wants is one statement with one commit.
// Those who wait stand in line in the row. A release lets in the next in line,
// in the same step, and sends the grant itself by NOTIFY to that client's own
// channel: nobody else wakes, and nobody polls. Nothing is sent while nobody
// waits. A client listens on one connection of its own, however many wait.
//
// The table is made once, by [Store.Create] or "holdfast init --store URL".
//
// # What it promises
//
//   - What package sqllock promises.
//   - A waiter that is woken within milliseconds. A wake that got lost, because
//     the connection was cut, costs a second.
//
// # What can go wrong
//
//   - What package sqllock names: a standby that missed the last commits, a
//     server whose clock steps, rows that somebody deletes.
//   - A pooler in transaction mode, such as PgBouncer, does not pass notifications
//     on. [New] and the URL notice one by the process id, which differs from the
//     server's. Waiters then ask every few milliseconds up to half a second,
//     unless ?listen= or Options.Listen names the server itself. Locks work the
//     same: where there is a pooler, statements are not prepared.
//   - NOTIFY takes a lock of the whole cluster until the commit is on disk, so a
//     busy queue slows other users of NOTIFY.
//
// # Permissions
//
// SELECT, INSERT, UPDATE and DELETE on the table; nothing else. [Store.Create]
// needs CREATE on the schema.
//
// # URL
//
//	postgres://user:password@host:port/database?parameters
//
//	table=holdfast   the table, or schema.table
//	listen=host:port the server to listen at, if host is a pooler
//	conns=4          the most connections for statements, 1 to 100. Of several, one
//	                 is left to those who renew and release
//	mode=session     see [Session]
//	sslmode, sslrootcert, sslcert, sslkey, connect_timeout, target_session_attrs
//	                 as libpq has them. Without sslmode, a server that is not on
//	                 this machine must prove its name (verify-full), unless
//	                 PGSSLMODE says otherwise. connect_timeout is 5 seconds for
//	                 each host.
//
// A primary and its standbys are given as libpq has them too:
//
//	postgres://user:password@/database?host=db1,db2&port=5432,5433
//
// target_session_attrs is then read-write, so that a promoted standby is found;
// a host that does not answer costs connect_timeout. What the URL leaves out is
// taken from the PG* environment variables and ~/.pgpass, as psql does.
package pglock
