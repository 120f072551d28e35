// Package mssqllock is a store in SQL Server 2016 or later, and Azure SQL, over go-mssqldb.
//
//	import _ "github.com/holdfast-go/holdfast/mssqllock"
//
//	locks, err := holdfast.Open(ctx, "sqlserver://app:password@db.example.com?database=app", nil)
//
// To use your own database: [New]. For a lock that ends with your own transaction: [LockTx].
// docs/guarding.md says when to use which.
//
// # What was tested
//
// The tests run with Babelfish 4.3, a server on PostgreSQL 16 that speaks the protocol and the
// SQL of SQL Server. No test runs with a server of Microsoft: what this package says of such
// servers follows from their documentation. Each statement is one that both servers run. Before
// you rely on the store, run "holdfast verify --store sqlserver://..." against your server, and
// set HOLDFAST_TEST_SQLSERVER to its URL to run the tests.
//
// # How it works
//
// A lock is a lease: a row in a table, as package sqllock describes. Without contention,
// acquiring and releasing a lock take one round trip and one commit each. Waiters queue in
// the row. A release grants the lock to the next waiter in the queue.
//
// A store that [holdfast.Open] makes wakes waiters, by a bell: an application lock
// (sp_getapplock) with a name of its own, which each process holds and writes into its claims. A
// waiter waits in sp_getapplock for the bell of the claim before it in the queue. After a release,
// the process lets go of its bell for a moment. A process that dies lets go when the server
// notices. A wake-up is a hint; the row decides. The bell takes one connection beside those of
// conns, and waiters take up to four. Waiters beyond four, waiters for a slot of a semaphore, and
// waiters behind a process without a bell poll: after milliseconds at first, and every half second
// in the end, whatever holdfast.Options.Poll is. With wake=false, Poll is the longest pause.
//
// With a store that [New] makes, every waiter polls (holdfast.Options.Poll).
//
// Each statement sets NOCOUNT, XACT_ABORT, IMPLICIT_TRANSACTIONS, the isolation level and
// LOCK_TIMEOUT for itself, so defaults of the server, the login or the connection have no effect.
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
//     server whose clock steps, rows deleted by hand. An availability group with asynchronous
//     commit may miss commits. A database with DELAYED_DURABILITY = FORCED may lose the last
//     commits in a crash; Check, called by holdfast.Open, warns of the setting.
//   - A waiter that polls learns of a release up to half a second late. A waiter with a bell
//     learns up to a second late that an operator broke the lock. The holder of a broken
//     lock learns of the break at the next renewal.
//   - Times are taken when a statement begins. A statement that has waited for a row grants
//     a little less than the TTL, never more.
//   - A row that a foreign transaction keeps locked: calls for the key fail until the transaction
//     ends. A statement waits for up to 0.7 s and is sent again. A renewal of several keys waits
//     for 10 ms, and renews the other keys.
//   - A caller that gives up leaves its statement behind, which may take effect for up to a second
//     more. The store then counts the outcome as unknown.
//
// # Sessions
//
// There is no session mode. An application lock of a session would end with the connection, but SQL
// Server does not end a silent connection within a TTL: the lock of a machine that has lost its
// power would stand until TCP keep-alive ends the connection.
//
// # Permissions
//
// SELECT, INSERT, UPDATE and DELETE on the table; nothing else. The bell and [LockTx] need no
// rights beyond those of public. [Store.Create] also needs CREATE TABLE, CREATE VIEW and ALTER on
// the schema, and a database with compatibility level 130 or higher.
//
// # URL
//
//	sqlserver://user:password@host:port?database=NAME&parameters
//	sqlserver://user:password@host/INSTANCE?database=NAME
//
//	database             the database; there is no default
//	table=holdfast       the table, or schema.table
//	conns=4              the most connections, 1 to 100. With several, one is reserved
//	                     for renewals and releases
//	wake=true            wake waiters, with up to five more connections; false: poll
//	encrypt              true, false (the login only, if the server can), strict, or disable.
//	                     The default is false for a server on this machine, and
//	                     true for a remote server, which must prove its name
//	certificate          a PEM file: the trusted CA
//	TrustServerCertificate=true
//	                     encrypt without proof
//	connect_timeout=5s   for one connection, 100ms to 1h
//	hostNameInCertificate, serverCertificate, tlsmin, app name, workstation id,
//	packet size, keepalive, protocol, ServerSPN, epa enabled, MultiSubnetFailover,
//	failoverpartner, failoverport, failoverpartnerspn, notraceid
//	                     as go-mssqldb has them
//
// Names of parameters may have upper and lower case. Parameters for the statements of the
// application have no effect on the statements of the store, such as ApplicationIntent and
// timezone. Open warns of a URL that may send a password to a remote host unencrypted. For
// Windows logins and Microsoft Entra ID, open a database with go-mssqldb yourself, and use [New].
//
// The port is 1433 unless the URL names a port or an instance.
package mssqllock
