// Package zoo is a client for one session with a ZooKeeper ensemble, made for
// locks. It differs from a general client in four ways.
//
// A session that has ended is over: nothing is ever done under another session in
// its place. Every call ends with its context. Requests that are sent together
// travel together, in one round trip. And the client knows until when the ensemble
// keeps the session for certain, however the network fails; see [Session.Trust].
package zoo
