// Package sim runs the unchanged engine in a simulated world: processes, links with
// faults, a store, and virtual time. A seed decides all events. A judge checks every
// access to the guarded data.
//
//	go test ./internal/sim                            about 20 s of new seeds
//	go test ./internal/sim -timeout=0 -args -for=10m
//	go test ./internal/sim -run TestSeeds -args -seed=42
//
// # How a world is composed
//
// [Run] opens a bubble of testing/synctest, makes a [World] in the bubble, and calls a
// function. Then Run ends the world: every process is closed, the network comes to rest,
// and nothing may be left in the store.
//
//	sim.Run(t, seed, sim.Memory(), func(w *sim.World) {
//		a := w.Process("a", &holdfast.Options{TTL: time.Second})
//		a.Link("store").Faults = sim.Faults{Request: 0.1, Delay: time.Second}
//		a.Go("1", func(r *sim.Routine) {
//			held, err := r.Lock(ctx, sim.Want{Key: "k"})
//			if err != nil {
//				return
//			}
//			held.Look()
//			held.Unlock()
//		})
//		w.Wait()
//	})
//
// The parts are:
//
//   - A [World] has a seed, a [Trace] and a [Judge]. [World.Rand] makes a generator from
//     the seed and a name, so that no draw depends on the order in which goroutines happen
//     to run.
//   - A [Store] is the far end: a Store connects a process. [Memory] is memlock. [Serve]
//     is a server of books that can fail over and lose the last writes. A new store
//     implements [Store]: the store takes a link from the process ([Process.Link]) for
//     each server. The store either wraps a whole driver.Store with [Over], or sends calls
//     with [Send].
//   - A [Process] is a Locker behind links. Process.Locker is a plain *holdfast.Locker:
//     code that knows nothing of the simulator may use the Locker. A process can be
//     stopped ([Process.Freeze]), suspended ([Process.Suspend]), killed and closed. The
//     clock of a process may drift (Process.Rate).
//   - A [Link] loses, repeats, delays and refuses calls according to [Faults]. A link is
//     cut by [Link.Cut] or in the windows of [Link.Plan]. A lost call waits for the end of
//     the context, as in a real client.
//   - A [Routine] is a goroutine of a process. Routine.Lock records the call in the trace
//     and shows the lock to the judge. [Held.Look] is an access to the guarded data.
//   - [Judge.Calm] says that the faults are over: then nobody may wait for a free key.
//   - [Above] makes a whole world from a seed, for code that is built on locks. A [Stage]
//     tells such code when the faults are over.
//   - [Seeds] are the flags of a random test, which runs the worlds of new seeds.
//
// Package cmd/holdfast-verify/internal/linear makes small worlds, and checks that their
// histories are linearizable.
//
// # What a stopped process does not do
//
// While a process is stopped, no message leaves or arrives, no timer of the engine fires,
// and the goroutines of the process neither begin nor end a call. Deadlines of contexts
// still pass. If the context of a call ends then, the call is cut short inside the engine,
// and returns when the process goes on.
//
// [Process.Suspend] stops a process with the machine. The timers of the engine and the
// sleeps of the goroutines stand still meanwhile, and end late by the time asleep. The
// clock of the engine counts the time asleep.
//
// # Stores
//
// In every world the goroutines draw from the same calls and options, as far as the store
// supports them. TestSeeds runs the whole engine on a store of one server. For each of the
// remaining stores, a test runs worlds with that store's own code over simulated servers:
//
//   - TestRedlock: package redlock over nodes that are cut off one by one, restart without
//     claims, and have different clocks.
//   - TestMemcached: package memcachelock over a server of registers that compares and
//     swaps, with a clock of seconds. The connections are streams of bytes.
//   - TestCAS: package caslock over a register. Reads may be out of date, and swaps may be
//     carried out late or twice. In half of the worlds the register reports changes, in half
//     of the worlds a refusal has the record. The clock is right, or the register tells its
//     time, or the time of each process is wrong.
//   - TestSessions: package internal/session over a database whose locks end with the
//     session, sooner or later after the client fell silent.
//   - TestSQL: package sqllock over one table. The test reads and carries out the
//     statements for Postgres, and so finds a wrong condition in a statement. The clock of
//     the server is set back.
//
// In half of the worlds with faults, processes are stopped, suspended, killed and closed, an
// operator breaks claims, a Memcached restarts, a database ends sessions early, and a table
// goes back to the state of a replica. After such a loss the promise is weaker, and so is the
// judge. The judge does not check the locks that the store may have lost until their leases
// have ended. But tokens still have to grow. When the faults have ended, the test passes
// two facts to [Judge.Calm]: how long a key may be free while a waiter polls, and whether
// the store promises FIFO order.
//
// A store that refuses a power has worlds without that power: Redlock has no slots. A
// session has exclusive locks only, shows no claims that could be broken, and cannot keep a
// key taken after the end of its client (MinHold).
//
// These worlds leave the following to holdfast-verify:
//
//   - the SQL of MySQL and SQLite, sequences of PostgreSQL, sessions of MariaDB, and the effect
//     of two statements at the same time in a database;
//   - wake-ups by pg_notify;
//   - the scripts of Redis, and the connections to Redis;
//   - files, and package fence;
//   - etcd and ZooKeeper, because their stores have no place yet for a simulated server.
//     Tests of package zklock cover the rules of that package.
//
// # Code above locks
//
// TestOnce, TestElect and schedlock.TestSchedlock run packages once, elect and schedlock on
// a store of one server, with the same faults but for broken claims. When the faults and
// their aftermath are over, every effect is done, the job has a leader, and every tick is
// run, each within a bound of virtual time. TestSchedlock is in the module of schedlock,
// because the root module requires no other module.
//
// # Replay
//
// Plain synctest leaves the order of goroutines, select, and the jitter of the engine to
// the runtime. The same seed therefore gives a similar run, not the same run. Package
// exact fixes the runtime too: "make replay SEED=42" gives the same run each time, as a
// timeline. Replay needs Go 1.26.
package sim
