// Package elect implements leader election: one of several processes leads, and does a job
// that must not be done twice. When the leader ends, dies or is cut off, another process
// takes over.
//
//	err := elect.Run(ctx, locks, "mailer", func(ctx context.Context) error {
//		return sendMails(ctx) // ctx ends before another can lead
//	})
//
// Each process calls [Run] with the same job. The job is a key of the store, and the holder
// of its lock leads. The other processes queue for the lock.
//
// # What ends a term
//
// The context of the leader's function ends, with the reason as its cause, when
//
//   - the lock is lost,
//   - the leader's [Check] fails,
//   - [MaxTerm] is over, or
//   - the context of Run ends.
//
// The function should return soon then. If the function does not return within its
// [Grace], the lock is released anyway. Run never campaigns before the function has
// returned, so two calls of the function never overlap in one process.
//
// After that Run campaigns again, unless the context of Run has ended. The result of the
// function counts only if the function returned before its context ended:
//
//   - nil or an error ends Run, which returns the result: the job is done, or this process
//     cannot do the job;
//   - [ErrStepDown] hands over: another process leads if there is one, and this process
//     campaigns again after two seconds.
//
// # How long there is no leader
//
// After a hand-over the first waiter leads at once, if the store notifies waiters, and
// within a second on other stores. If a leader dies, is paused, or is cut off from the
// store, a successor leads when the TTL of the leader is over. The TTL is 15 seconds unless
// [TTL] or the options of the Locker set it; etcd and ZooKeeper take longer, as
// docs/guarantees.md says. If the lock was lost, or could not be acquired, Run waits for up
// to a second, at random, before the retry.
//
// # What is not promised
//
// A leader that is paused, with its process or its machine, cannot notice that another
// process leads meanwhile. When the leader resumes, its context ends, but not before the
// first instructions run. Guard work that must not happen twice with the fencing token of
// the term, which is larger in each later term:
//
//	lock, _ := holdfast.FromContext(ctx)
//	token := lock.Fence()
//
// Package fence checks the token on the side of the data. Only the token, not the
// context, stops a function that goes on working after its Grace.
package elect
