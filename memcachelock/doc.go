// Package memcachelock is a store in Memcached 1.6.10 or later: a guard against duplicate
// work, for teams that run no other store.
//
//	import _ "github.com/holdfast-go/holdfast/memcachelock"
//
//	locks, err := holdfast.Open(ctx, "memcached://localhost:11211", nil)
//
// Memcached is a cache. It drops items when its memory is full, when it is restarted, and
// when somebody flushes it. If the item of a lock is dropped, the lock is free. Use these
// locks where a second holder, once in a while, costs some work or a mail sent twice.
// Examples are double clicks, cache refreshes, and cron jobs that can safely run twice.
// Do not use them where a second holder costs data. Use one of the other stores there, or
// let the data check the token, which holds for longer than the lock does.
//
// # How it works
//
// A key is an item with a small record of the holders, in JSON: exclusive locks, readers,
// slots with their weights. "add" creates the item, "cas" changes it, and a delete with the
// same CAS number removes it. A process therefore never ends or prolongs the lock of a
// different holder, not even a lock acquired after its own item was dropped. A lock without
// contention costs two round trips: one to acquire, one to release. Renewals go a hundred
// at a time. Errors of the server, such as no memory or an item too large, are errors, and
// grant nothing.
//
// A released or broken claim may leave a tomb in the record: for ten seconds, an Acquire with
// the same id is refused, since the request was on its way during the release.
//
// All times come from the server, which counts seconds and does not follow the wall clock.
// The shortest TTL is therefore a second. The lock of a dead holder stands up to four
// seconds longer than the TTL, and mostly two or three. The server looks at the time once a
// second, and a late look must not end a lock early. If several claims share a record, the
// time is read from an item with a known end.
//
// Waiters do not queue. One waiter is the next, and retries every few milliseconds, after a
// long wait after a hundredth of the wait. The remaining waiters retry at intervals that grow
// from 50 ms to half a second (holdfast.Options.Poll). When the next has acquired the key, the
// first of the remaining waiters to retry becomes the next. Waiters leave marks for up to three
// seconds: two items beside the item of the key.
//
// A process that releases the key and finds a mark may acquire the key for another tenth of
// a second. Then the process backs off until another process has acquired the key, for half a
// second at most; its TryLock is refused although the key may be free. Every process can
// therefore acquire the key, even if other processes lock again at once, and a writer acquires
// the key between readers (holdfast.Shared). If readers hold their locks for a quarter of a
// second or more, and overlap, a writer may still starve.
//
// With several servers, each server has some of the keys. The server of a key follows from
// the names of the servers in the URL, in any order; every client must name the same
// servers alike. Nothing is copied, and a key is never looked up on a second server: a key
// cannot be locked while its server is down.
//
// # What it promises
//
//   - Mutual exclusion while the server keeps the item. There is no promise that the server
//     keeps the item.
//   - If the item of a lock is dropped, the holder is notified at the next renewal, after
//     a third of the TTL, and in any case before the TTL is over. A later release never
//     ends the lock of a new holder.
//   - Fencing tokens that grow, also over eviction, flush and restart. A token is the
//     second in which the server began, times a million, plus the number of items stored
//     since. The promise has three conditions. The wall clock of the server is not set
//     back between two starts. The server stores less than a million items a second in
//     the long run. The list of servers stays the same. Tokens stay below 2^53.
//
// # What can go wrong
//
//   - Eviction: a server without -M drops items not used for long when its memory is full,
//     locks included. Open warns of such a server. A full server with -M refuses new locks
//     with its own error. Locks that are alone on their key are still renewed and released;
//     locks that share a key can be lost.
//   - Restart and flush_all end all locks at once, before the holders know. A server with
//     -e that is stopped by SIGUSR1 keeps the locks.
//   - A server that has just started grants no locks for up to two seconds. Lock waits for the
//     server, with Backoff for the TTL at most. TryLock fails if its call has less time, and says
//     why.
//   - A change of the list of servers moves some keys. Their locks are free on the new
//     server, and their tokens begin anew. Stop all holders first, or change all clients at
//     once and wait for the longest TTL.
//   - A server may be stopped for more than a second (SIGSTOP, a frozen machine). In its
//     first moments afterwards, the server may grant a lock by a clock that still shows
//     the time of the stop. Such a lock ends early by the length of the stop, unless
//     renewed before.
//   - An item has at most a megabyte (-I), some thousand holders of one key. The next
//     holder gets an error.
//   - Anyone who can reach the server can cause all of this. Keep the server in a private
//     network.
//
// Proxies that choose a server by the key, such as mcrouter and twemproxy, are not
// supported, nor are SASL and the binary protocol. For TLS, give [New] a function that
// dials.
//
// # URL
//
//	memcached://[user:password@]host[:11211][?...]
//	memcached://host:port,host:port,...   with a port each, or none
//
//	prefix   before the names of all items, up to 60 bytes; default holdfast:
//	conns    the most connections to each server; default 8
//
// User and password are for servers with -Y, and travel unencrypted. Open warns of that
// unless the server is on this machine.
package memcachelock
