// Package engine turns the calls of one process into requests to a store: turns, waits,
// renewals, losses and releases. Package holdfast is the public face: options, errors,
// events and the log.
//
// # Where to find what
//
// A request goes down this list, and mostly a file uses only files below. docs/engine.svg
// shows the exceptions.
//
//   - engine.go: [Engine], with New and Close.
//   - call.go: one call of Lock on its way to a grant. It enters the turn of its key, stands
//     in the queue of the turn, or becomes the contender.
//   - contender.go: the contender, and its waits between two requests.
//   - upgrade.go: what a call of Upgrade does differently.
//   - attempt.go: all requests of a call to the store, and what becomes of the answers.
//   - renewer.go: renewals in the background.
//   - release.go: the end of a hold, by Unlock or a loss, and the methods that look for the end.
//   - parking.go: claims that the process keeps for a moment after Unlock.
//   - cleaner.go: releases in the background.
//   - core.go: the settings, the store, the clock, the pauses and the mutex of some keys, for the
//     files above.
//   - table.go: the state behind the mutex.
//   - agenda.go: which lease is due next.
//   - turn.go, queue.go: who in this process has the next claim on a key.
//   - hold.go: a [Hold], while it lasts.
//   - lease.go, bond.go: the life of a claim, as the process counts it.
//   - event.go: the facts for errors, events and the log.
//   - request.go: the wishes of a caller.
//
// The agenda, the turn, the queue and the lease are plain rules, without store, clock and
// goroutine.
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
// A core has one mutex. core.lock returns the table behind the mutex, so a function with a
// *table runs with the mutex locked. So do the methods of turns, of the agenda, and of leases in a
// turn. An engine has one core, and more if its store is a driver.Local: then calls on different
// keys seldom wait for the same mutex. A key belongs to one core. Cores share only the store, the
// settings, the clock and the end.
package engine
