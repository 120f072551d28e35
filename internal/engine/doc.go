// Package engine turns the calls of one process into requests to a store: turns, waits,
// renewals, losses and releases. Package holdfast is the public face: options, errors,
// events and the log.
//
// # Where to find what
//
// A request goes down this list:
//
//   - engine.go: [Engine], with New and Close.
//   - call.go: one call of Lock on its way to a grant. It enters the turn of its key, stands
//     in the queue of the turn, or becomes the contender.
//   - wait.go: the requests of a call to the store, and the waits between two of them.
//   - hold.go, release.go: a [Hold], from the grant until Unlock.
//   - renewer.go, cleaner.go: work in the background.
//   - core.go: the store, the clock and the mutex, for the files above.
//   - table.go: the state behind the mutex.
//   - request.go: what a caller wants.
//   - parking.go: claims that the process keeps for a moment after Unlock.
//   - turn.go, queue.go, agenda.go, lease.go, bond.go: plain rules, without store, clock and
//     goroutine.
//   - event.go: the facts for errors, events and the log.
//
// # Words
//
// A claim is a request or a grant at the store, see package driver. A lease is a claim as
// seen by the process. A turn is the queue of the process for a key. The contender of a
// turn asks the store. The renewer looks after the leases in the agenda. The cleaner
// releases claims in the background.
//
// # The mutex
//
// The engine has one mutex. core.lock returns the table behind the mutex, so a function
// with a *table runs with the mutex locked. So do the methods of turns, of the agenda, and of
// leases in a turn.
package engine
