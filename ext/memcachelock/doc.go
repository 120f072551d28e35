// Package memcachelock is a store in Memcached 1.6 or later: a guard against
// doing things twice, for those who run nothing else.
//
//	import _ "github.com/holdfast-go/holdfast/ext/memcachelock"
//
//	locks, err := holdfast.Open(ctx, "memcached://localhost:11211", nil)
//
// Memcached is a cache. It forgets what it was given when its memory is full, when
// it is restarted, and when somebody flushes it, and a lock that it has forgotten
// is free. So use these locks where a second holder, once in a while, costs some
// work or a mail sent twice, and not where it costs data: double clicks, cache
// refreshes, cron jobs that do no harm when they run twice. For the rest there
// are the other stores; or let the data check the token, which holds for longer
// than the lock does.
//
// # How it works
//
// A key is an item with a small record of who holds it, in JSON: exclusive
// locks, readers, slots with their weights. It is made by "add" and changed by
// "cas", and taken away by a delete that names the same CAS number, so nobody
// ever ends or prolongs another's lock, also not one that came after its own was
// forgotten. A lock that nobody else wants costs two round trips, one to take
// and one to release it; renewals go a hundred at a time. Errors of the server,
// such as no memory or an item too large, are errors, and grant nothing.
//
// All times are the server's, which counts seconds and does not follow the wall
// clock. So the shortest TTL is a second, and a lock whose holder died stands up
// to four seconds longer than its TTL, and mostly two or three: the server looks
// at the time once a second, and one that is late with that must not end a lock
// early. Where several claims share a record, the time is read from an item that
// all know the end of.
//
// Those who wait do not stand in line: each asks again and again, at intervals
// that grow from 50 ms to half a second (holdfast.Options.Poll), and the first who
// asks after a release has the lock. With holdfast.Shared and many readers a writer may
// wait for long.
//
// Of several servers each has some of the keys. Which one follows from the names
// of the servers as the URL gives them, in whatever order; all clients must name
// the same ones alike. Nothing is copied, and a key is never looked for on
// another server: while its own is down it cannot be locked.
//
// # What it promises
//
//   - Mutual exclusion while the server keeps the item. There is no promise that it
//     does.
//   - A holder whose lock was forgotten is told at its next renewal, after a third
//     of the TTL, and in any case before the TTL is over. What it then releases is
//     never another's.
//   - Fencing tokens that grow, also over eviction, flush and restart: the second in
//     which the server began, and after it how many times it has stored something.
//     That is, as long as its wall clock is not set back between two starts, it
//     stores less than a million items a second in the long run, and the list of
//     servers stays as it is. They stay below 2^53.
//
// # What can go wrong
//
//   - Eviction: a server without -M drops what was not used for long when its
//     memory is full, locks that are held included. Open warns of it. With -M it
//     refuses new locks with its error when it is full; those that are held alone
//     are renewed and released, and those that share a key can be lost.
//   - Restart and flush_all end all locks at once, before their holders know. With
//     -e, and stopped by SIGUSR1, a server keeps them.
//   - A change of the list of servers moves some keys, whose locks are free there,
//     and their tokens begin anew. Stop all holders first, or change all clients
//     at once and wait for the longest TTL.
//   - A server that was stopped itself for more than a second (SIGSTOP, a frozen
//     machine) may give a lock in its first moments by a clock that stands where
//     it was stopped. Such a lock ends early by as much, unless it is renewed before.
//   - An item has at most a megabyte (-I), some thousand holders of one key. The
//     next one gets an error.
//   - Whoever reaches the server can do all of this. Keep it in a private network.
//
// Proxies that choose a server by the key, such as mcrouter and twemproxy, are not
// supported, nor are SASL and the binary protocol. For TLS give [New] a function
// that dials.
//
// # URL
//
//	memcached://[user:password@]host[:11211][?...]
//	memcached://host:port,host:port,...   with a port each, or none
//
//	prefix   before the names of all items, up to 60 bytes; default holdfast:
//	conns    the most connections to each server; default 8
//
// User and password are for servers with -Y, and travel unencrypted.
package memcachelock
