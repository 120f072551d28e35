// Package mysqllock locks in MySQL and MariaDB.
//
// [LockTx] takes a lock inside a transaction of the caller. docs/guarding.md says
// when to use it.
package mysqllock
