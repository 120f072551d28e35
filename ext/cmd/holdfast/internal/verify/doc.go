// Package verify puts a store to the proof: real processes lock, work and unlock
// on shared keys while they are killed, stopped and cut off, write down all that
// happens, and the history is judged afterwards. Command holdfast shows it as
// "holdfast verify".
//
// # What takes part
//
// Workers are processes of their own: the same program, started again, which
// ends up in package worker. What they do, and what is done to them, is planned
// in package plan from a seed. What they lock guards registers of package
// register: rows, keys of Redis, or files. What they have written down is judged by package check, which is the
// only one that knows what is right.
//
// # What is harmed
//
// Workers are processes of the run's own, and what lies between a worker and a
// server is a proxy of the run's own, if faults of the network are done. So a store
// that the user names is harmed by nothing but the load. Servers are harmed only if
// the run has started them.
package verify
