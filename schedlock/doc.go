// Package schedlock runs each tick of a schedule on one of several replicas, the first
// that comes, by a lock in any store.
//
//	job := schedlock.Job{Locks: locks, Name: "report", Schedule: schedlock.Every(time.Hour)}
//	err := job.Loop(ctx, func(ctx context.Context) error {
//		return sendReport(ctx) // ctx ends if the lock of the run is lost
//	})
//
// [Job.Loop] is for programs without a scheduler. With a scheduler, each replica schedules
// the job as if it were alone, and calls [Job.Run] when a tick is due:
//
//   - github.com/robfig/cron: c.Schedule(schedule, cron.FuncJob(job.Func(ctx, fn))),
//     where the schedule of cron is also the schedule of the Job;
//   - github.com/go-co-op/gocron/v2: gocron.NewTask(job.Func(ctx, fn)), or package
//     gocronlock for gocron's Locker. If a single replica is to run all jobs, use an
//     [Elector] as gocron's Elector;
//   - systemd timers, Kubernetes and crontabs have the command: holdfast run --try.
//
// # How a tick is known
//
// A replica finds the due tick by its own clock and the [Schedule]. The due tick is the
// last tick that is not after now. Because timers are not exact, the next tick counts as
// due already if it is ahead by no more than a tenth of the schedule's interval, and by
// at most a second. The tick is a key of the store, "report@2026-11-21T20:00:00Z". The
// first replica that takes the key runs the job. The key stays taken, so a replica whose
// clock is behind finds the tick taken when it comes. No replica takes over a tick, even
// if the replica that took the key dies. [Tick] returns the tick that the job runs.
//
// # Which stores
//
// The key of a tick has to outlive the process that took the key. Redis, etcd, the tables
// of databases and Memcached support such keys. ZooKeeper and the sessions of databases
// do not, and Redlock only for the length of its quarantine: with these stores a Job
// fails with an error that matches [holdfast.ErrInvalid]. Files support them, too, but a
// file of 4 KiB stays for each tick, so files suit jobs that run once a day. For the
// processes of a single host, SQLite needs no such files.
//
// # What is promised
//
// No tick is run twice as long as the clocks of the replicas differ by no more than
// [Job].Tolerance, a minute unless set, and the store keeps its data. The tolerance may
// be longer than the interval: replicas need not agree on the current time, only on the
// names of the ticks. A replica that comes to a tick later than the tolerance, because it
// was paused, does not run the tick.
//
// A tick is not run if no replica comes in time, if the replica that took the tick fails
// or dies, or if the store does not answer. A tick that was not run is not made up for:
// the next tick is the next chance. So a job should do all due work, not only the share
// of its tick.
//
// If the clock of a replica is set, [Job.Loop] follows within a minute. Loop leaves the
// ticks that it has reached before to the other replicas, and reports [ErrSetBack] if the
// clock was set back by more than the tolerance.
//
// A time is a tick if the schedule, asked right before, says that the time is due. So
// replicas agree about the ticks in nights with a clock change, even if schedules of cron
// miss or invent a tick when they are asked from a much earlier time.
//
// While a run takes longer than the interval, the next ticks are skipped, unless
// [Job].Overlap says otherwise. If a replica dies in a run, ticks are skipped until the TTL
// of its lock is over. [Job].MaxHold ends a run that hangs in a live process. [Job].Report
// receives the outcome of every tick.
//
// A replica that is paused in the middle of a run cannot notice that another replica runs
// a later tick meanwhile. The context of the run has ended when the replica resumes.
// Guard work that must not happen twice with the fencing token of the lock that the
// context carries, see [holdfast.FromContext].
package schedlock
