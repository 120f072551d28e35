// Package caslock is a store on any engine with compare-and-set: the author of a store
// implements a [Register] of three methods, and caslock adds the locks.
//
//	locks, err := holdfast.New(caslock.New(register, nil), nil)
//
// Package natslock is such a store. Packages that import caslock document their own URL.
//
// # How it works
//
// A key has one record in the register: the holders, the queue, and the highest fencing
// token. A call reads the record, applies the rules of package driver, and swaps the record
// if its version is unchanged. Otherwise the call begins again. A process remembers the
// last record of a key. Without contention a lock therefore costs two requests: one swap to
// acquire, one swap to release, and a read if the process has not used the key before.
//
// No clock of another machine counts. Each claim in a record has a beat: the nonce of the
// record that last prolonged the claim. A process counts the TTL of a foreign claim from the
// moment when the process first saw the beat, on its own monotonic clock. The holder counts
// from before its swap, so the lease of the holder always ends first.
//
// Each record has a number that grows, and a random nonce. No two records are equal, not
// even if an operator deletes a record: a version made from the content never returns. The nonce tells a
// process whether a swap without an answer was carried out.
//
// If the answer to a swap is lost, the swap may be carried out later. The store then answers
// no refusal and no loss from a record that the late swap could still replace. Instead, the
// store swaps that record once more. The same protects against a read that is out of date.
//
// All claims of one call on one key share a swap. So a process renews all its claims on a
// key by one request.
//
// # What waiters cost
//
// A [Register] that is a [Watcher] reports changes, over one watch for each key and process.
// Otherwise one goroutine for each key and process reads the record: the first waiter of the
// queue reads after each [Options.Look], the waiter at place n after n times as long. So n
// waiters of a key together read 1 + 1/2 + ... + 1/n times in each Look: with 100
// waiters and the default of half a second, 10 times a second.
//
// In addition, a waiter swaps the record to keep its place: three times in each
// [driver.Claim.Alive] at the head of the queue of a Watcher, and less often far back.
// Without a Watcher a place lasts for the TTL, so n waiters swap 3n times in each TTL. If
// each request costs money, choose a TTL of a minute or longer for keys with many waiters.
//
// # What it promises
//
//   - Mutual exclusion while the register compares and swaps, and keeps its records.
//   - FIFO order. No claim passes the queue. A claim enters the queue by a swap, which may lose
//     against swaps of other processes several times.
//   - Fencing tokens that grow. A token is the next number or the microseconds of the clock,
//     whichever is larger. If the register is a [Clock], its clock counts, otherwise the
//     clock of the process. If a record is removed, tokens keep growing unless the clock is
//     behind.
//
// # What can go wrong
//
//   - A process that has just started has seen no beat. The process waits for a whole TTL
//     from its first look until the claim of a dead holder has expired.
//   - Rates of two clocks may differ by two per cent. If the clock of a waiter runs faster
//     than that, the waiter may end the claim of a live holder.
//   - A register that accepts a swap with an old version lets two holders in. Stores on
//     services with several implementations should test the service when they open it.
//   - Whoever can write the records can take every lock, and whoever can read the records
//     can release every lock.
package caslock
