// Package holdfast provides locks across goroutines, processes and machines, in the store
// that you already run.
//
//	locks, err := holdfast.Open(ctx, "file:///var/lib/app/locks", nil)
//	if err != nil {
//		return err
//	}
//	defer locks.Close()
//
//	err = locks.Do(ctx, "account/42", func(ctx context.Context) error {
//		return withdraw(ctx, 42, 100) // ctx ends if the lock is lost
//	})
//
// # The model
//
// A [Locker] acquires locks on keys in one store. A lock is a lease with a TTL: if its
// holder falls silent for the TTL, the lease expires. So a crashed holder blocks nobody
// for long. Holdfast renews a held lock in the background, for as long as the work takes.
// If the lock is held, [Locker.Lock] waits, and [Locker.TryLock] returns an error that
// names the holder.
//
// # What a lock guarantees, and what it cannot
//
// The store never has two holders. A running holder learns of a lost lock before anyone
// else can hold the key. [Lock.Done] is closed, contexts made by [Lock.Context] end, and
// [Lock.Err] returns the reason.
//
// A holder in a paused process, or on a paused machine, learns of the loss only after the
// pause. By then a new holder may be at work. No lock service can prevent this overlap.
// The fencing token, [Lock.Fence], protects the data: every later holder has a larger
// token. A resource that remembers the largest token it has seen, and rejects smaller
// ones, cannot be corrupted by a former holder.
//
// docs/guarantees.md lists the guarantees of every store, for every kind of failure.
//
// # Which call
//
//   - Work that must not overlap: [Locker.Do], or [Locker.Lock] and Unlock.
//   - A second request that should fail instead of waiting: [Locker.TryLock].
//   - Readers and writers: [Shared]. A reader that then writes: [Lock.Upgrade].
//   - At most n holders at once: [Slots].
//   - Several keys at once, without deadlock: [Locker.LockAll].
//   - A scheduled job that only one node should run: TryLock with [MinHold].
//   - A test of code that takes locks: package locktest.
//
// Use one Locker per process and store, and share the Locker: the goroutines of the
// process then take turns without a request to the store.
package holdfast
