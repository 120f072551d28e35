// Package caslock is a store on any engine with compare-and-set: the author of a store
// implements a [Register] of three methods, and caslock adds the locks.
//
//	locks, err := holdfast.New(caslock.New(register, nil), nil)
//
// Packages natslock, s3lock, gcslock, azurelock and dynamodblock are such stores. Packages that
// import caslock document their own URL.
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
// queue reads after each [Options.Look], the waiter at place n after n times as long. While the
// same claims hold, the waiters behind the first read less and less. Their turn may then be late
// by an eighth of that time.
//
// In addition, a waiter reads and swaps the record to keep its place, three times in the life of
// the place. Without a Watcher, a place lasts for the TTL at the head of the queue, for a quarter
// of the TTL more with each place, and for 8 TTLs at most. A TTL counts here as two minutes at most,
// or as three times [Options.Look] if that is longer. So a place never lasts for hours. For a Watcher, a
// place lasts for [driver.Claim.Alive] at the head, and for as long again with each place, up to
// the same limit: each renewal is a report to all waiters. A process whose waiters all are far
// back does not parse the record of a report. The first four waiters ask when a claim ahead ends
// without a report.
//
// Requests without a Watcher, with the default Look and a TTL of 30 seconds, while one process
// holds the key for minutes:
//
//	waiters  reads a second  swaps a second
//	      0             0.0             0.1
//	      1             2.8             0.3
//	     10             3.7             0.7
//	    100               8             2.3
//	   1000              34              16
//
// A test counts all rows but the last, which was counted once, in four minutes of a processor. The
// first waiter alone reads 2.7 times a second. The other requests become fewer with a longer
// TTL, up to two minutes. A grant costs about 2 to 3 swaps and 2 to 4 reads if each holder releases
// at once.
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
//   - A dead waiter blocks a key at its turn for [driver.Claim.Alive]. Without a Watcher, a dead
//     waiter behind the head blocks the key for three of its pauses, until its place ends. After the
//     death of many waiters, a key is blocked for as long as the longest of their places lasts: 8
//     TTLs at most, and 16 minutes unless Look is longer than 40 seconds. A place begins when a
//     living waiter first sees its last request.
//   - A process that has just started has seen no beat. The process waits for a whole TTL
//     from its first look until the claim of a dead holder has expired.
//   - Rates of two clocks may differ by two per cent. If the clock of a waiter runs faster
//     than that, the waiter may end the claim of a live holder.
//   - A register that accepts a swap with an old version lets two holders in. Stores on
//     services with several implementations should test the service when they open it.
//   - A user who can write the records can end and take every lock. A user who can only read the
//     records sees all ids, owners and notes, but ends no lock.
package caslock
