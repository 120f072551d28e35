// Package etcdlock is a store in etcd 3.4 or later.
//
//	import _ "github.com/holdfast-go/holdfast/etcdlock"
//
//	locks, err := holdfast.Open(ctx, "etcd://h1:2379,h2:2379,h3:2379", nil)
//
// To use your own client, call [New]. If your client logs in with a password, etcd 3.4
// locks the client out after five minutes without a request, the lifetime of a login.
// Open does not have this problem.
//
// # How it works
//
// A claim is a key in the folder (key prefix) of its lock, written under an etcd lease.
// The claims of a folder are ordered by create revision; the order is the FIFO queue.
// A claim holds or waits according to the weights of the claims ahead. Every client
// computes the same result, so no client has to write the holder down. Acquiring a free
// lock is one transaction, and releasing the lock is a second transaction. Each
// transaction is a single write, as in the Mutex of etcd's own client. Concurrent
// transactions of a process for different keys are combined into one.
//
// The claims of a process with about the same TTL share a lease. The process keeps the
// lease alive on one stream, somewhat in advance. Ten thousand held locks cost one
// message every second or two, plus one read per hundred locks at renewal. If an owner
// does not renew a claim, the process removes the claim. If the process is dead, cut
// off or paused, etcd removes the claim with the lease. The lease outlasts the TTL by a
// fifth, at least one second and at most ten. Rounding adds at most an eighth of the
// whole.
//
// Waiters watch the folder for claims that leave. The process has one watch for each
// key with waiters, all on one stream. A watch begins before the waiter's last read of
// the queue, so no departure is missed. The watch begins with future events, not past
// ones, so etcd sends every event at once. The Mutex of etcd's own client waits for a
// tick of a tenth of a second. A waiter holds the key without a further request as soon
// as every claim ahead has left. A waiting claim has a separate lease, of three seconds
// plus one, so a dead waiter soon leaves the queue. A claim that joins a long queue, or meets a
// slow etcd, has a longer lease, because the requests of many waiters take the time of the
// server. With a TTL of at most 15 seconds, that is mostly the lease of the held claims, of up
// to 18 seconds. With a longer TTL it is a separate lease, of up to 15 seconds.
//
// With more than sixteen claims ahead, a waiter watches only one of them, which has to leave
// first, and then looks at the queue. So a release is an event for few waiters. A writer that
// joins a queue writes its name to a second key of etcd, one for each queue. The last name there
// is the claim to watch, so the writer reads only a few claims of a long queue. If the process
// knows that the queue is long, the writer joins it without a look before. With more than 64 claims
// ahead, a request goes to etcd only after 10 to 20 ms for each other claim on the key. The requests
// before are answered from memory. Only the answers of etcd name the holder.
//
// If etcd takes a third of a writer's call to say that the key is not free, the call returns a
// refusal, and the next call joins the queue. A request that etcd has not answered goes on, and the
// next call waits for its answer. Thus a thousand clients may begin to wait for a key at the same
// moment.
//
// A tomb is a key that keeps the id of an ended claim from coming back, for 10 to 20
// seconds.
//
// # What it promises
//
//   - Mutual exclusion, as long as a majority of the members keeps its data. A change
//     of the leader makes leases longer, never shorter. No clock can be set wrong.
//   - FIFO order over all processes; readers do not pass a waiting writer. A waiter
//     without an answer for three seconds, or longer in a long queue, loses its place and
//     queues again.
//   - Growing fencing tokens. A token is the create revision of the claim times 256,
//     which leaves room for hand-offs within a process. Tokens stay below 2^53 for
//     3*10^13 writes. Readers that hold at the same time share a token. A semaphore
//     slot beside readers, or the upgrade of a reader, ends their phase: the record of
//     each reader says so before the slot holds, and the next reader has a larger token.
//   - A holder learns of a vanished lock at its next renewal at the latest. If the
//     lease has ended, the holder learns within about a second. A late release never
//     releases the lock of a later holder.
//
// # What can go wrong
//
//   - No majority: no lock can be acquired or renewed. Holders are notified before
//     their TTL ends. Meanwhile no other process acquires their locks.
//   - A member that hangs without closing its connections: a call sent to the member is
//     retried after half a second, mostly at a different member; after five seconds, if the
//     client knows no other. A call whose retry meets the hanging member again may fail.
//     Calls that wait for a lock, and renewals, are then made again. If several members are
//     behind one address, and one of them hangs, Lock fails after three seconds without an
//     answer, instead of a second attempt. After 13 seconds the
//     client notices the hanging member. With your own client, set DialKeepAliveTime.
//   - A cluster restored from a snapshot has lost the locks and tokens granted since
//     the snapshot. Stop the holders before the restore. Restore with etcdutl's
//     --bump-revision and --mark-compacted, or tokens restart from smaller values. A
//     Store stops for good if it meets a different cluster id, or a revision below one
//     already seen. The Store then notifies the holders of their lost locks and revokes
//     its leases, and every call returns an error. Restart the process after that. If
//     etcd has already passed the revisions known to a Store, the Store cannot detect
//     the restore. Its holders learn of missing locks at their next renewal.
//   - Space: once etcd has raised its NOSPACE alarm, new locks fail. Waiters already in
//     the queue acquire their locks, for their TTL at most unless their place is under the
//     lease of the held claims. Held locks can be renewed and released. etcd keeps every
//     write until compaction, so enable --auto-compaction-retention. Open warns of the alarm.
//   - Keys deleted by hand, and leases revoked by hand.
//
// A TTL is at least two seconds. Tokens cannot be raised, so etcd cannot be a node of
// package redlock.
//
// # Permissions
//
// With authentication, a user needs the right to read and write the prefix:
//
//	etcdctl role grant-permission locks --prefix readwrite holdfast/
//
// # URL
//
//	etcd://[user:password@]host[:2379],host[:2379],...[?...]
//	etcds://...   the same with TLS. Open warns of a password that etcd:// sends to
//	              another host
//
//	prefix             before all keys, with a slash at its end; default holdfast/
//	ca, cert, key      files in PEM: whom to trust, and who we are (etcds)
//
// Name all members. A single member is enough to connect, but if it fails, the client
// does not find the rest.
package etcdlock
