// Package mysqllock is a store in MySQL 8 or MariaDB 10.6, or later, over
// go-sql-driver/mysql.
//
//	import _ "github.com/holdfast-go/holdfast/ext/mysqllock"
//
//	locks, err := holdfast.Open(ctx, "mysql://app@db.example.com/app", nil)
//
// With a database of your own: [New]. Locks that end with their connection:
// [Session]. Inside a transaction of your own: [LockTx] takes a lock that ends with
// it. docs/guarding.md says when to use which.
//
// # How it works
//
// A lock is a lease: a row in a table, as package sqllock describes. To take or
// to release a lock that nobody else wants is one statement with one commit.
// Those who wait stand in line in the row, and have no connection. A release lets
// in the next in line. The server cannot call it, so it asks: after milliseconds
// at first, and every half a second in the end (holdfast.Options.Poll).
//
// The table is made once, by [Store.Create] or "holdfast init --store URL".
//
// # What it promises
//
// What package sqllock promises.
//
// # What can go wrong
//
//   - What package sqllock names: a replica that missed the last commits, a server
//     whose clock steps, rows that somebody deletes. Asynchronous and
//     semi-synchronous replication may both miss some.
//   - Whoever waits learns of a release up to half a second late, and the holder
//     of a lock that an operator has broken at its next renewal.
//   - Times are those of the moment when a statement began. One that has waited
//     for a row grants a little less than the TTL, never more.
//   - With several servers that write, as in Galera, each has a clock of its own,
//     and one that is ahead ends the leases of others early by as much. Let all
//     processes write to the same server.
//   - A database that you have opened yourself must commit by itself. Where the
//     server is set to autocommit=0, set it to 1 in your DSN, as the URL here does;
//     Check, which holdfast.Open asks, warns of it.
//   - A server in read-only mode (read_only, super_read_only, a replica) grants and
//     renews nothing. Its connections are dropped then, so that the next call goes
//     where its name leads to by then, as after a switch-over; who waits rides that
//     out for up to the TTL. A database that you have opened yourself needs
//     rejectReadOnly=true for it, see [New].
//
// The statements are the same for MySQL and MariaDB. Its tests run with MariaDB
// 10.11; HOLDFAST_TEST_MYSQL points them at another server.
//
// # Permissions
//
// SELECT, INSERT, UPDATE and DELETE on the table; nothing else. [Store.Create]
// needs CREATE, CREATE VIEW and DROP besides.
//
// # URL
//
//	mysql://user:password@host:port/database?parameters
//	mysql:///database?socket=/path/to/mysqld.sock
//	mariadb://...        the same
//
//	table=holdfast       the table, or schema.table
//	conns=4              the most connections, 1 to 100. Of several, one is left
//	                     to those who renew and release
//	tls=true             encrypt, and let the server prove its name; false;
//	                     preferred: encrypt if it can; skip-verify: any server.
//	                     The default is false for a server on this machine, and
//	                     true for all others.
//	ca, cert, key        files in PEM: whom to trust, and who we are
//	socket               a Unix socket instead of a host
//	connect_timeout=5s   for one connection, 100ms to 1h
//	mode=session         see [Session]
//
// The port is 3306 unless the URL has another.
package mysqllock
