// Package elect lets one of several processes lead: it does a job that must not be
// done twice, and when it ends, dies or is cut off, another takes over.
//
//	err := elect.Run(ctx, locks, "mailer", func(ctx context.Context) error {
//		return sendMails(ctx) // ctx ends before another can lead
//	})
//
// Each process calls [Run] with the same job. The job is a key of the store, and
// whoever holds its lock leads. The others stand in line for it.
//
// # What ends a term
//
// The context of the leader's function ends, with the reason as its cause, when
// the lock is lost, when its [Check] fails, when [MaxTerm] is over, or when the
// context of Run ends. The function should return soon then. If it does not within
// its [Grace], the lock is given up all the same. Run never campaigns before the
// function has returned, so there are never two of them in one process.
//
// After that Run campaigns again, except if its own context has ended. What the
// function returned decides only if it returned before its context ended:
//
//   - nil or an error ends Run, which returns it: the job is done, or this process
//     cannot do it;
//   - [ErrStepDown] hands over: another leads if there is one, and this process
//     campaigns again after two seconds.
//
// # How long there is no leader
//
// After a hand-over the next in line leads at once, on stores that wake those who
// wait, and within a second on others. A leader that dies, is paused, or is cut
// off from the store, has a successor when its TTL is over, which is 15 seconds
// unless [TTL] or the options of the Locker say otherwise; etcd and ZooKeeper take
// longer, as docs/guarantees.md says. After it was lost, or could not be had, Run waits
// for up to a second, at random, before it asks again.
//
// # What is not promised
//
// A leader that is paused, with its process or its machine, knows nothing, and when
// it goes on may have been replaced. Its context ends then, but not before its
// first instructions. What must not happen twice is guarded by the fencing token of
// the term, which is larger in each later term:
//
//	lock, _ := holdfast.FromContext(ctx)
//	token := lock.Fence()
//
// Package fence has the other side of it. In the same way the token, not the
// context, stops a function that goes on working after its Grace.
package elect
