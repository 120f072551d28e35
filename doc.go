// Package holdfast takes locks that hold across goroutines, processes and
// machines, in the store that you already run.
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
// A [Locker] takes locks on keys in one store. A lock is a lease: the store
// forgets it when its holder falls silent for its TTL, so a crash blocks nobody
// for long. A lock that is held is renewed in the background, for as long as
// the work takes. A caller who cannot have the lock waits ([Locker.Lock]) or is
// told by whom it is held ([Locker.TryLock]).
//
// # What a lock guarantees, and what it cannot
//
// The store never has two holders. A holder that runs learns that its lock is
// lost before anyone else can hold the key: [Lock.Done] is closed, contexts made
// by [Lock.Context] end, [Lock.Err] says why. A holder that does not run, because
// its process or machine is paused, learns nothing until it runs again, and by
// then another may be at work. No lock service can prevent that. What does is
// the fencing token, [Lock.Fence]: a number that is larger for each later
// holder. A resource that remembers the largest token that it has seen, and
// refuses smaller ones, cannot be harmed by a holder of yesterday.
//
// docs/guarantees.md says for each store, and for each kind of failure, what
// holds.
//
// # Which call
//
//   - Work that must not overlap: [Locker.Do], or [Locker.Lock] and Unlock.
//   - A second request that should be refused rather than wait: [Locker.TryLock].
//   - Readers and writers: [Shared]. At most n at once: [Slots].
//   - Several keys at once, without deadlock: [Locker.LockAll].
//   - A job on a schedule, on one node: TryLock with [AtLeast].
//
// Use one Locker per process and store, and share it: goroutines of one process
// then take turns without asking the store.
package holdfast
