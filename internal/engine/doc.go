// Package engine turns the calls of one process into requests to a store: turns, waits,
// renewals, losses and releases. Package holdfast is its public face, and gives names and
// words to what happens here.
//
// # Where to find what
//
// A request goes down this list, and never up:
//
//   - engine.go: [Engine], with New and Close.
//   - call.go: one call of Lock on its way to a grant. It enters the turn of its key, stands
//     in the queue of the turn, or becomes the contender.
//   - wait.go: the requests of a call to the store, and the waits between two of them.
//   - hold.go, release.go: a [Hold] is what the caller gets, from the grant until Unlock.
//   - renewer.go, cleaner.go: the work that no caller waits for.
//   - core.go: what all of the above share.
//   - table.go: what the mutex guards.
//   - turn.go, queue.go, agenda.go, lease.go, bond.go: plain rules, without store, clock and
//     goroutine.
//   - event.go: what the engine reports, for the face to put into words.
//
// # Words
//
// A claim is what the store knows, see package driver. A lease is a claim as the process
// sees it. A turn is the place where the goroutines of the process that want one key stand
// in a queue. One of them, the contender, asks the store. The renewer looks after the
// leases in the agenda. The cleaner releases the claims that no caller waits for.
//
// # The mutex
//
// The engine has one mutex. core.lock returns the table that the mutex guards, so a
// function with a *table runs with the mutex locked.
package engine
