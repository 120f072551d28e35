// Package redislock is a store in Redis 6 or later, or Valkey: a single server, a primary
// with replicas and Sentinels, or a Cluster.
//
//	import _ "github.com/holdfast-go/holdfast/redislock"
//
//	locks, err := holdfast.Open(ctx, "redis://localhost:6379", nil)
//
// With a client of your own: [New] takes a rueidis client, package goredis a go-redis
// client.
//
// # How it works
//
// Each verb is one script, run by EVALSHA; a server that does not know the script gets
// its text. All times are the server's. An uncontended lock costs two round trips, one to
// acquire and one to release, like a bare SET NX and a compare-and-delete script. One
// script renews up to a hundred locks.
//
// Waiters queue in Redis. A release grants the lock, in the same step, to the head of the
// queue if the claim fits, and to the waiters behind while there is room. A grant is a
// single message to the channel of the waiter, and no other waiter wakes. A waiter that
// has lost its connection is passed over, and keeps its place for three seconds. A waiter
// retries every second, and after reconnecting. The first waiter in the queue notices an
// expired claim, because the last refusal said when to retry.
//
// With replicas, a waiter may listen at a replica. The primary then grants the lock
// without knowing whether the waiter is alive. If the waiter is dead, the next waiter has
// to wait for three seconds, or the TTL if the TTL is shorter.
//
// A client listens on one connection. In a Cluster, grants travel through sharded
// channels (Redis 7), on the existing connections.
//
// A key is a hash of the holders, a list of the waiters, and a hash of the waiters'
// places. All three are deleted with the last claim. A Break, or a Release whose Acquire
// may still be on its way, leaves a tomb: a key that refuses the claim's id for at least
// ten seconds. One number stays for good: the highest fencing token given, so that the
// next token is larger whatever the clock does. A Cluster has one such number for each of
// 1,024 buckets of keys, because the keys of a script must lie in one slot.
//
// Concurrent calls are combined: while two calls are under way, later calls gather, and
// then go in one script. A lone call goes at once.
//
// # What it promises
//
//   - Mutual exclusion as long as the server keeps its data and its clock does not jump
//     forward.
//   - FIFO order over all processes; readers do not pass a waiting writer.
//   - Fencing tokens that grow: microseconds of the server's clock, or the next number if
//     that is larger. Tokens are ahead of the clock by four milliseconds at most, unless
//     the clock goes back. So tokens also grow over a restart with an empty memory, and over
//     the promotion of a replica that missed the last writes, as long as the new server's
//     clock is not further behind than the change took, less these four milliseconds. Tokens
//     grow over FLUSHALL as long as the clock does not go back. Tokens stay below 2^53.
//   - The key holdfast:floor keeps the highest token. If that key has no whole number
//     with room below 2^53, claims are refused, and the error names the key.
//   - If a lock vanishes, for any reason, the holder learns of the loss at the next
//     renewal at the latest. A release after the loss never ends a claim of another
//     process.
//
// # What can go wrong
//
//   - Failover: replication is asynchronous, so a promoted replica may miss the last
//     grants and grant the same locks again. The first holders learn of the loss at their
//     next renewal; the guarded data is safe only if it checks the token. For locks that
//     survive the loss of a server, use package redlock over independent servers.
//   - Failover with ?wait=1: a grant or renewal counts only once a replica has the write,
//     too. The price is a round trip to the replica, and an error if there is no replica.
//     The loss of a lock becomes unlikely but not impossible: another replica may be
//     promoted, and a primary that is cut off may still answer. Set min-replicas-to-write
//     and min-replicas-max-lag, so that such a primary stops.
//   - Failover with Sentinels: a primary that was replaced while away comes back as a
//     primary. Therefore a Store that was opened by URL does not connect to a server if
//     the Sentinels that answer all name another primary. A client of your own may
//     connect, and then two primaries grant locks until the Sentinels demote the old one.
//   - Restart: with "appendfsync everysec" the last second is lost, with snapshots more,
//     without persistence everything.
//   - Eviction: under any maxmemory-policy but noeviction, Redis may remove held locks.
//     Open warns of such a policy. With noeviction, a full server refuses new locks with
//     [ErrOOM]; renewing, releasing and handing over go on.
//   - A server clock that jumps forward ends leases early, by as much. A clock that goes
//     back lets leases stand longer. Open refuses a server whose clock differs from this
//     machine's by more than a day.
//   - FLUSHALL, DEL, and anybody else who may write these keys.
//   - Several servers behind one address, and servers that only look like Redis: before the
//     first lock, the store takes random locks over two connections, and refuses what grants
//     one lock twice. A balancer that sends both connections to one server goes unnoticed.
//     During a failover, one connection may lead to the old primary and the other to the new
//     one. Then the call fails, and a later call proves the servers again.
//   - Each Store proves its server once, in about two milliseconds. With a URL, the process
//     does so once for each run of a server, however many Stores are opened. With a client of
//     your own, each Store proves: only the client knows to what its addresses lead.
//   - In a Cluster, a key is not available while its slot has no primary. Calls fail
//     until then, and waiters retry.
//
// # miniredis
//
// Tests can use github.com/alicebob/miniredis/v2 in place of a server. All kinds of locks
// work there, with waiters, renewals, LockAll, Holders and Break, by URL and with both
// client libraries. A rueidis client needs ForceSingleClient, because miniredis answers
// like a Cluster of one; a URL needs nothing. The records of package redisonce work, too.
//
// miniredis counts no time by itself. FastForward ends the lock of a process that has
// gone. If other claims wait for the lock or share it, the claims end by the clock: call
// SetTime too, or ClockTTL(true) for a server on which time passes. miniredis shows
// neither its memory settings nor its age. So Open warns of nothing, and redlock accepts
// miniredis as a node with ?quarantine=0 only.
//
// # Permissions
//
// A user needs these rights, on keys and channels with the prefix:
//
//	ACL SETUSER locks on >secret resetkeys ~holdfast:* resetchannels &holdfast:* -@all
//	  +eval +evalsha +time +exists +get +set +del +pttl +pexpire
//	  +hget +hset +hdel +hexists +hgetall +rpush +lrem +lindex +lrange
//	  +publish +spublish +pubsub +subscribe +ssubscribe +unsubscribe +sunsubscribe
//	  +ping +hello +client +select +info +scan +cluster +wait
//
// The error for a missing right names the right. Some rights are optional:
//
//   - Without the right to subscribe, waiters retry at growing intervals, and the Locker
//     logs a warning.
//   - Without the right to publish, waiters find their grant when they retry.
//   - Without PUBSUB or INFO, a dead waiter is not passed over.
//   - SELECT is for a database number, CLUSTER for a Cluster, SCAN for holdfast
//     ls, INFO for the warnings and for redlock, WAIT for ?wait.
//   - PING, HELLO and CLIENT are for the client library, which works without them.
//
// # URL
//
//	redis://[user:password@]host[:6379][/database][?...]
//	redis://host:port,host:port,...   with a port each, or none
//	rediss://...   the same with TLS
//	unix:///path/to/socket[?db=0&...]
//
//	prefix             before all keys and channels; default holdfast:
//	wait               how many replicas must have a grant or renewal; default 0
//	master             name of the primary that Sentinels watch: the hosts are then the
//	                   Sentinels, at port 26379 unless the URL says otherwise
//	sentinel_user, sentinel_password
//	db                 database number
//	ca, cert, key      PEM files: the CAs to trust; the client's certificate and key (rediss)
//	server_name        name in the server's certificate, if not the host (rediss)
//	skip_verify        trust any certificate (rediss), as that of Heroku's servers
//	addr               more hosts, each in a parameter of its own
//	dial_timeout, protocol, client_name, master_set
//	                   as in rueidis.ParseURL; a plain number means seconds, as in
//	                   go-redis
//
// A URL that is made for rueidis or go-redis works as it is: its parameters for pools,
// retries, and read and write timeouts have no effect here. Open warns of a URL that
// sends a password to another host unencrypted.
//
// A Cluster is recognized by itself; one host is enough, several are better.
package redislock
