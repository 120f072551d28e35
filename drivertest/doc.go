// Package drivertest checks that a store keeps the contract of package driver.
//
// A store's test passes a function that opens clients. Every sentence of the contract is a
// named subtest. A failure prints the sentence, then what the store did instead:
//
//	func TestStore(t *testing.T) {
//		server := startServer(t)
//		drivertest.Run(t, drivertest.Harness{
//			MinTTL: 100 * time.Millisecond,
//			Open: func(t testing.TB) driver.Store {
//				return newStore(t) // a client of the server
//			},
//		})
//	}
//
//	func BenchmarkStore(b *testing.B) { drivertest.Bench(b, ...) }
//
// The rules test everything in the contract. If a store lacks a feature, and may lack it,
// the harness declares so in [Harness.Lacks]; the rules then check that the store refuses
// honestly. A store that loses an optional interface by accident fails, because the harness
// has not declared the loss.
//
// A store that waits for a server also says how to reach the server over a [Link], which
// the rules about outages interrupt.
//
// Rules mostly wait for claims to expire. For a store with a real server, run go test
// with -parallel 8 or more. A store inside the test process can set [Harness.Bubble]: the
// clock of the store is then the clock of a synctest bubble, and hours pass in
// milliseconds.
//
// A machine that stalls does not fail the store. If a check failed after a late call, the check
// runs again: a claim may have expired, or a node of the store may have had the request late. If
// every try was late, the test of the rule is skipped. If a call had no answer, the
// check runs again, too; after five such attempts the rule fails. Every other failure counts at
// once, so a store that is wrong now and then gets no second try. go test -v shows a line
// for each rule that had late tries: "not proved on a machine this slow".
//
// Under go test -short every rule makes a quarter of its rounds on a real server, and a
// batch has fewer holders. For a heavy store on a real server, the short form makes an eighth of
// the rounds, and a batch has 40 claims. See [Harness.Heavy].
//
// A random workload goes on until enough claims are granted to judge. If a slow machine
// grants too few in five minutes, go test -v shows that the rule is not proved.
//
// The random workloads print the seed of a failing run. Set DRIVERTEST_SEED to the seed
// to make the same choices again, and DRIVERTEST_ROUNDS to make more rounds.
package drivertest
