// Package verify tests a store: real processes lock, work and unlock on shared keys while
// the processes are killed, stopped and cut off. The processes write a history of the
// events, and the run judges the history afterwards. Command holdfast-verify offers the
// test as "holdfast verify".
//
// # Parts of a run
//
// Workers are separate processes: the same program, started again, runs package worker.
// Package plan plans the operations and the faults from a seed. The locks guard registers
// of package register: rows, keys of Redis, or files. Package check judges the history, and
// is the only package that knows the rules.
//
// # Limits of the harm
//
// Workers are processes of the run. If a run has network faults, a proxy of the run stands
// between a worker and a server. So a store that the user names suffers nothing but the
// load. A run harms only servers that the run has started.
package verify
