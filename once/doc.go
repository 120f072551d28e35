// Package once runs an effect once per key, across processes, and gives every caller
// the same result.
//
//	effects := once.Runner{Locks: locks, Records: records}
//
//	receipt, err := effects.Do(ctx, "order/7f3a", func(ctx context.Context) ([]byte, error) {
//		return charge(ctx, order) // ctx ends if the lock is lost
//	})
//
// A lock alone prevents two processes from running at the same time. A lock does not
// prevent a second run after the first: a form sent twice, or a payment retried because
// its answer was lost. To prevent the second run, the result must be remembered, by
// [Records] next to a [holdfast.Locker].
//
// # How it works
//
// A caller first looks up the result of the key. If there is no result, the caller
// acquires the lock "once/" + key. The caller then marks the key as begun in the
// records, with the fencing token of the lock. Next the caller runs the effect, records
// the result and releases the lock. Concurrent callers wait for the lock, or are
// refused, and then find the result.
//
// The state "in progress" is the lease of the lock, not a written mark that could stay
// for days. If the owner dies, the lock expires after its TTL, and a waiting or later
// caller takes over.
//
// # What it promises
//
//   - While the records and the lock store keep their data, no process repeats an
//     effect with a remembered result, until the retention ends.
//   - Every caller that gets a result without an error gets the same result. The
//     records reject the token of a former owner that was paused or cut off. A former
//     owner can neither overwrite the result of a later owner nor add a result once a
//     later owner has begun.
//   - An error or a panic of the effect is not remembered. The next caller may try.
//   - A key begun with a fingerprint ([Runner.Begin]) is refused with a different
//     fingerprint. The refusal holds while the key is begun, also by an owner that has
//     died, and when the key is done.
//
// # What can go wrong
//
//   - An owner may die, or lose its lock, after the effect and before the result is
//     remembered. The effect has then happened and runs again. No lock can prevent the
//     second run. To prevent it, commit effect and result together (see [SQL]); or pass
//     the key to the service that the effect calls, as most payment services accept such
//     a key; or pass the token, so that the service rejects an outdated owner.
//   - A Finish that cannot reach the records has the same consequence; its error
//     matches [ErrUnrecorded].
//   - Tokens compare only within a single lock store. Processes that share records must
//     share the lock store and the prefix.
//
// docs/once.md lists the guarantees for every kind of crash.
package once
