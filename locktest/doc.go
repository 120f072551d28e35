// Package locktest tests code that takes locks: in milliseconds, without a server, in a
// world where a lock is lost at the worst moment.
//
//	func TestReportStopsWithoutItsLock(t *testing.T) {
//		locktest.Run(t, func(t *testing.T, w *locktest.World) {
//			done := make(chan error, 1)
//			go func() { done <- report(t.Context(), w.Locker()) }()
//			synctest.Wait() // the report is at work
//			w.Lose("report")
//			if err := <-done; !errors.Is(err, holdfast.ErrLost) {
//				t.Errorf("the report has returned %v", err)
//			}
//		})
//	}
//
// [Run] makes a [World] in a bubble of testing/synctest, where time is virtual: an hour of
// sleep takes no time. Each [Process] of the world has a *holdfast.Locker, and all of them
// share one store. At the end, a lock without an Unlock fails the test, and the failure
// names the line of the Lock.
//
// # What to test
//
//   - The key is held: [World.HoldElsewhere].
//   - The lock is lost while the code works: [World.Lose].
//   - The store does not answer: [Process.Cut].
//   - The process is paused after its last check, and writes late: [Process.Pause].
//   - Faults at steps that a seed chooses: [Explore].
//
// # Find the lost update
//
// Three deposits read a balance, ask a bank, and write the new balance under a lock:
//
//	locktest.Explore(t, 300, func(t *testing.T, w *locktest.World) { ... })
//
// The first ignores its context, and loses an update within a few seeds and milliseconds.
// The second looks at its context before asking the bank, and fails as fast, since the lock
// is lost later. The third lets the data check its fencing token, as package fence does, and
// passes 300 seeds, five hours of virtual time, in two seconds. The examples of [Explore]
// show the first and the third, docs/testing.md shows all three. A [Register] is data for
// tests, and a [FencedRegister] checks tokens. A fake of your own calls [Process.Step].
//
// # What the world is, and is not
//
// The world is no mock: waiting, renewal, loss, contexts and tokens are the real engine's.
// The store (package memlock), the network and the time are simulated. So locktest tests
// your code. Real stores are tested by the contract (package drivertest) and by
// "holdfast verify".
//
// A pause stops the Lockers and the steps of a process, but no goroutines: Go code between
// two steps runs on. Nor can a process be killed. [Process.Cut] without Mend has the same effect
// on others: the locks of the process end with their TTL.
package locktest
