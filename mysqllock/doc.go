// Package mysqllock is a store in MySQL 8 or MariaDB 10.6, or later, over
// go-sql-driver/mysql.
//
//	import _ "github.com/holdfast-go/holdfast/mysqllock"
//
//	locks, err := holdfast.Open(ctx, "mysql://app@db.example.com/app", nil)
//
// To use your own database: [New]. For locks that end with their connection: [Session]. For
// a lock that ends with your own transaction: [LockTx]. docs/guarding.md says when to use
// which.
//
// # How it works
//
// A lock is a lease: a row in a table, as package sqllock describes. Without contention,
// acquiring and releasing a lock take one statement and one commit each. Waiters queue in
// the row. A release grants the lock to the next waiter in the queue.
//
// A store that [holdfast.Open] makes wakes waiters within milliseconds, by a bell: a GET_LOCK
// lock with a name of its own, which each process holds and writes into its claims. A waiter
// waits in GET_LOCK for the bell of the claim before it in the queue. After a release, the
// process lets go of its bell for a moment. A process that dies lets go, too. A wake-up is a
// hint; the row decides. The bell takes one connection beside those of conns, and waiters
// take up to four. Waiters beyond four, waiters for a slot of a semaphore, and waiters
// behind a process without a bell poll: after milliseconds at first, and every half second
// in the end, whatever holdfast.Options.Poll is. With wake=false, Poll is the longest pause.
//
// With a store that [New] makes, every waiter polls (holdfast.Options.Poll).
//
// The table is created once, by [Store.Create] or "holdfast init".
//
// # What it promises
//
// The promises of package sqllock.
//
// # What can go wrong
//
//   - The failures named by package sqllock: a replica that missed the last commits, a
//     server whose clock steps, rows deleted by hand. Asynchronous and semi-synchronous
//     replication may both miss commits.
//   - A waiter that polls learns of a release up to half a second late. A waiter with a bell
//     learns up to a second late that an operator broke the lock. The holder of a broken
//     lock learns of the break at the next renewal.
//   - Times are taken when a statement begins. A statement that has waited for a row grants
//     a little less than the TTL, never more.
//   - With several writing servers, as in Galera, each server has its own clock. A server
//     with a clock ahead ends the leases of the other servers early by as much. Let all
//     processes write to the same server.
//   - A database that you have opened yourself must autocommit. If the server is set to
//     autocommit=0, set autocommit to 1 in your DSN, as the URL here does. Check, called by
//     holdfast.Open, warns of a wrong setting.
//   - A server in read-only mode (read_only, super_read_only, a replica) grants and renews
//     nothing. The store then drops its connections, so that the next call looks the host
//     name up again and follows a switch-over; a waiter tolerates the change for up to the
//     TTL. A database that you have opened yourself needs rejectReadOnly=true for this, see
//     [New].
//
// The statements are the same for MySQL and MariaDB. The tests run with MariaDB 10.11; set
// HOLDFAST_TEST_MYSQL to test with a different server.
//
// # Permissions
//
// SELECT, INSERT, UPDATE and DELETE on the table; nothing else. [Store.Create] also needs
// CREATE, CREATE VIEW and DROP.
//
// # URL
//
//	mysql://user:password@host:port/database?parameters
//	mysql:///database?socket=/path/to/mysqld.sock
//	mariadb://...        the same
//
//	table=holdfast       the table, or schema.table
//	conns=4              the most connections, 1 to 100. With several, one is reserved
//	                     for renewals and releases
//	wake=true            wake waiters, with up to five more connections; false: poll
//	tls=true             encrypt, and let the server prove its name; false;
//	                     preferred: encrypt if possible; skip-verify: any server.
//	                     The default is false for a server on this machine, and
//	                     true for a remote server.
//	ca, cert, key        PEM files: the trusted CA, and the client's certificate and key
//	ssl-mode, ssl-ca, ssl-cert, ssl-key
//	                     the same as MySQL's own shell has them, without VERIFY_CA
//	socket               a Unix socket instead of a host
//	connect_timeout=5s   for one connection, 100ms to 1h
//	mode=session         see [Session]
//	timeout, compress, connectionAttributes, serverPubKey, allowNativePasswords,
//	allowCleartextPasswords, allowOldPasswords, allowFallbackToPlaintext
//	                     as go-sql-driver has them
//
// Parameters for the statements of the application have no effect on the statements of the
// store, such as parseTime, loc, clientFoundRows, charset, readTimeout, sql_mode and
// tx_isolation. The parameters of a DSN for go-sql-driver therefore work unchanged. Open
// warns of a URL that may send a password to a remote host unencrypted.
//
// The port is 3306 unless the URL names a port.
package mysqllock
