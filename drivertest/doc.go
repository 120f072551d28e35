// Package drivertest checks that a store keeps the contract of package driver.
//
// A store's test hands it a way to open clients, and gets every sentence of
// the contract as a named subtest. A failure prints the sentence, then what
// was seen instead:
//
//	func TestStore(t *testing.T) {
//		server := startServer(t)
//		drivertest.Run(t, drivertest.Harness{
//			MinTTL: 100 * time.Millisecond,
//			Open: func(t testing.TB) driver.Store {
//				return redislock.New(server.Client(t), nil)
//			},
//		})
//	}
//
//	func BenchmarkStore(b *testing.B) { drivertest.Bench(b, ...) }
//
// The rules ask for everything that the contract knows. What a store cannot do
// and need not, it declares in [Harness.Lacks]; the rules then check that it
// refuses honestly. A store that loses an optional interface by accident
// fails, because it has not declared that.
//
// Rules mostly wait for claims to run out, so give go test -parallel 8 or more
// for a store with a real server. A store that lives in this process can set
// [Harness.Bubble]: its clock is then that of a synctest bubble, and hours
// pass in milliseconds.
//
// A machine that stalls is not taken for a store that is wrong: where a call had no
// answer, or a claim may have run out before its time was up for the rule, the check is
// made again, up to five times. go test -v tells of that.
//
// The random workloads print the seed of a failing run. Set DRIVERTEST_SEED to
// it to make the same choices again, and DRIVERTEST_ROUNDS to make more of
// them.
package drivertest
