// Package etcdlock is a store in etcd 3.4 or later.
//
//	import _ "github.com/holdfast-go/holdfast/ext/etcdlock"
//
//	locks, err := holdfast.Open(ctx, "etcd://h1:2379,h2:2379,h3:2379", nil)
//
// With a client of your own: [New]. If that logs in with a password, etcd 3.4 locks it
// out when it has asked nothing for as long as a login lasts, five minutes; Open does
// not suffer from that.
//
// # How it works
//
// A claim is a key in the folder of what it locks, put there under a lease of
// etcd. The claims of a folder stand in the order of the revisions in which they
// were made, and that is the line: who holds follows from the weights of those
// before it, so that every client comes to the same result and nobody has to
// write it down. To take a lock that nobody else wants is one transaction, to
// release it another, each of one write, like the Mutex of etcd's own client.
//
// All claims of a process with about the same TTL share a lease, which is kept
// alive on one stream, somewhat in advance. Ten thousand locks that are held cost
// one message every second or two, and a read for every hundred of them when they
// are renewed. A claim that its owner does not renew is removed by the process
// itself; if that is dead, cut off or paused, etcd removes it with the lease, a
// fifth of the TTL later, one second at least and ten at most, rounded up by an
// eighth of the whole at most.
//
// Those who wait listen to who leaves the folder: one watch for each key on which
// the process waits, all of them on one stream. It begins before the last look, so
// that nothing is missed, and with what comes rather than with what was, so that
// etcd sends at once what happens; the Mutex of etcd's own client waits for a tick
// of a tenth of a second. Whoever hears that all before it have left holds the key
// without asking. A place in line is under a lease of its own, of three seconds and
// one more, so that a dead waiter is soon out of the way.
//
// # What it promises
//
//   - Mutual exclusion as long as a majority of the members keeps its data. A
//     change of the leader makes leases longer, never shorter, and no clock can be
//     set wrong.
//   - First come, first served, over all processes; readers do not pass a writer
//     that waits. Who waits and has no answer for three seconds stands in line anew.
//   - Fencing tokens that grow: the revision in which the claim was made, times
//     256, so that each has room for hand-offs within a process. They stay below
//     2^53 for 3*10^13 writes. Readers that hold at the same time share one, also
//     those who come when a slot of a semaphore beside them has got a larger one.
//   - A lock that vanished is lost to its holder at its next renewal at the latest;
//     one whose lease has ended at once, within about a second. What it then
//     releases is never another's.
//
// # What can go wrong
//
//   - No majority: nothing can be locked or renewed, and holders are told before
//     their TTL ends. Nobody else gets their locks meanwhile.
//   - A member that hangs without closing its connections: each call that goes to
//     it is sent to the next after half a second, until the client has noticed,
//     which takes 13 seconds. With a client of your own, set DialKeepAliveTime.
//   - A cluster that was restored from a snapshot knows neither the locks nor the
//     tokens that were given since: use a new prefix, or restore with a revision
//     bump. A Store that meets another cluster than before refuses to go on.
//   - Space: when etcd has raised its NOSPACE alarm, new locks fail, and those who
//     wait already get theirs for three seconds at most; held ones can be renewed and
//     released. etcd keeps every write until it is compacted; let it do so by itself
//     (--auto-compaction-retention). Open warns of the alarm.
//   - Keys that are deleted by hand, and leases that are revoked.
//
// A TTL is at least two seconds. Tokens cannot be raised, so an etcd is no node of
// package redlock.
//
// # Permissions
//
// With authentication a user needs the right to read and write the prefix:
//
//	etcdctl role grant-permission locks --prefix readwrite holdfast/
//
// # URL
//
//	etcd://[user:password@]host[:2379],host[:2379],...[?...]
//	etcds://...   the same with TLS
//
//	prefix             before all keys, with a slash at its end; default holdfast/
//	ca, cert, key      files in PEM: whom to trust, and who we are (etcds)
//
// One member is enough, but if it fails the others are not found: name all.
package etcdlock
