// Package zoo is a client for a single session with a ZooKeeper ensemble, made for locks.
// The client differs from a general client in four ways.
//
// A session that has ended is over: the client never continues under a new session. Every
// call ends with its context. Requests that are sent together travel together, in a single
// round trip. And the client knows until when the ensemble certainly keeps the session,
// however the network fails; see [Session.Trust].
package zoo
