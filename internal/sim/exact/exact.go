// Package exact makes a run of the simulator exactly repeatable: the same seed gives the
// same trace, byte by byte.
//
// A bubble of testing/synctest does not suffice. The order of goroutines, of the cases of
// a select and of the entries of a map comes from generators of the runtime. And a
// goroutine is preempted after 10 ms of real time. Package replay compiles a program with
// the tag exact and with an edited runtime, in which Seed sets the only generator. Without
// the tag, Seed does nothing.
package exact

// Order selects one of many orders in which goroutines may run. Seed uses Order.
var Order uint64
