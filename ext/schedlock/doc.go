// Package schedlock lets one of several replicas run each tick of a schedule, whoever
// of them comes first, by a lock in any store.
//
//	job := schedlock.Job{Locks: locks, Name: "report", Schedule: schedlock.Every(time.Hour)}
//	err := job.Loop(ctx, func(ctx context.Context) error {
//		return sendReport(ctx) // ctx ends if the lock of the run is lost
//	})
//
// [Job.Loop] is for programs without a scheduler. With one, each replica schedules
// the job as if it were alone, and calls [Job.Run] when a tick is due:
//
//   - github.com/robfig/cron: c.Schedule(schedule, cron.FuncJob(job.Func(ctx, fn))),
//     where the schedule of cron is also that of the Job;
//   - github.com/go-co-op/gocron/v2: gocron.NewTask(job.Func(ctx, fn)), or package
//     gocronlock for its Locker. Its Elector is an [Elector], where one replica is to
//     run all jobs;
//   - systemd timers, Kubernetes and crontabs have the command: holdfast run --try.
//
// # How a tick is known
//
// A replica names the tick that is due by its own clock and the [Schedule]: it is the
// last one that is not after now, or that is no further ahead than a tenth of the
// schedule's interval, at most a second, because timers are not exact. The tick is a
// key of the store, "report@2026-11-21T20:00:00Z". Whoever takes it first runs the
// job. It stays taken, so that a replica whose clock is behind finds that out when
// it comes; it gives way to nobody, also if the replica that has taken it dies. [Tick]
// tells the job which one it runs.
//
// # Which stores
//
// The key of a tick has to outlive the process that took it. Redis, etcd, the tables of
// databases and Memcached can do that. ZooKeeper and the sessions of databases cannot,
// and Redlock only for as long as its quarantine: there a Job fails with an error that
// matches [holdfast.ErrInvalid]. Files can, but one of 4 KiB stays for each tick, so
// that they suit jobs that run once a day; for the processes of one host, SQLite does
// without.
//
// # What is promised
//
// No tick is run twice as long as the clocks of the replicas are no further apart than
// [Job].Tolerance, a minute unless set, and the store keeps its data. The tolerance
// may be longer than the interval: replicas need not agree about what time it is now,
// only each has to call a tick by its name. A replica that comes to a tick later than
// the tolerance, because it was paused, does not run it.
//
// A tick is not run if no replica comes in time, if the one that has taken it fails or
// dies, or if the store does not answer it. It is not made up for: the next tick is
// the next chance. So a job should do all that is due, not the share of one tick.
//
// While a run takes longer than the interval, the next ticks are skipped, unless
// [Job].Overlap says otherwise; also when a replica has died in a run, until the TTL of
// its lock is over. A run that hangs, in a process that lives, is ended by
// [Job].MaxHold. [Job].Report is told of each tick what became of it.
//
// A replica that is paused in the middle of a run knows nothing, and when it goes on
// another may be running a later tick. The context of the run has ended then. What
// must not happen twice is guarded by the fencing token of the lock that the context
// carries, see [holdfast.FromContext].
package schedlock
