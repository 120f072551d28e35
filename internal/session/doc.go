// Package session keeps claims as locks of a session with a server. The locks end with the
// session; examples are the advisory locks of PostgreSQL and GET_LOCK of MySQL. The package
// knows the contract of package driver and no server; pglock and mysqllock each bring a
// [Server].
//
// # One session for all claims
//
// A process has one session for every claim, held or waiting. The server arbitrates between
// sessions. Within a session, server locks are re-entrant; a table in the process therefore
// arbitrates first. The table answers requests for a lock that this process holds, requests
// or releases.
//
// # How long a claim stands
//
// The server ends a session that is silent for longer than a limit. The limit covers the
// longest TTL of the held claims, by a margin, and is raised before a claim is granted that
// needs more. Every claim therefore stands for its TTL from the last request before which
// its owner knew the session to live. A paused or cut-off process keeps nothing for longer
// than the limit. One goroutine keeps the session alive with a ping for all claims, and
// releases claims that their owners do not renew.
//
// When the session ends, all its claims end with it, and their owners are notified. The next
// claim opens a new session; nothing is taken over.
package session
