// Package pglock locks in PostgreSQL.
//
// [LockTx] and [LockSQLTx] take a lock inside a transaction of the caller, and
// [CheckFence] refuses there what the holder of a lost lock would still write.
// docs/guarding.md says when to use which.
package pglock
