// Package redislock is a store in Redis 6 or later, or Valkey: a single server,
// a primary with replicas and Sentinels, or a Cluster.
//
//	import _ "github.com/holdfast-go/holdfast/ext/redislock"
//
//	locks, err := holdfast.Open(ctx, "redis://localhost:6379", nil)
//
// With a client of your own: [New] takes one of rueidis, package goredis one of
// go-redis.
//
// # How it works
//
// Each verb is one script, run by EVALSHA; a server that does not know it gets
// its text. All times are the server's. A lock that nobody else wants costs two
// round trips, one to take and one to release it, like the bare SET NX and a
// script that compares and deletes; renewals go a hundred to a script.
//
// Those who wait stand in line in Redis. A release lets in the first in line
// that fits, in the same step, and sends the grant itself to that client's
// channel: one message, and nobody else wakes. Whoever has lost its connection
// is passed over, and keeps its place for three seconds; a waiter asks again
// every second, and when it is connected again. (Where there are replicas it may
// listen at one of them: then it is let in all the same, and if it is dead the
// next one has to wait for three seconds, or the TTL if that is shorter.) An
// expired claim is noticed by the first in line, who was told when to ask.
//
// A client listens on one connection. In a Cluster grants travel through sharded
// channels (Redis 7), on the connections that are there anyway.
//
// A key is a hash of those that hold, a list of those in line, and a hash of
// their places. All of it is gone with the last claim. What stays is one number,
// the highest fencing token given, so that the next is larger whatever the clock
// does. In a Cluster there is one for each of 1,024 buckets of keys, because the
// keys of a script must lie in one slot.
//
// Calls that are made at the same time go together: while two are on their way,
// those that come meanwhile gather, and go in one script. A lone call goes at
// once.
//
// # What it promises
//
//   - Mutual exclusion as long as the server keeps its data and its clock does
//     not jump forward.
//   - First come, first served, over all processes; readers do not pass a writer
//     that waits.
//   - Fencing tokens that grow: microseconds of the server's clock, or the next
//     number if that is larger. They grow over a restart with an empty memory and
//     over the promotion of a replica that missed the last writes, as long as the
//     new server's clock is not further behind than the change took. They stay
//     below 2^53.
//   - A lock that vanished, for whatever reason, is lost to its holder at its next
//     renewal at the latest, and what it then releases is never another's.
//
// # What can go wrong
//
//   - Failover: replication is asynchronous, so a promoted replica may not know
//     the last grants, and give them to others. The holders learn of it at their
//     next renewal; whatever they guard is safe only if it checks the token.
//     With ?wait=1 a grant or renewal counts only once a replica has it too. That
//     costs a round trip to the replica, and an error where there is none; it
//     makes the loss unlikely but not impossible, because another replica may
//     be promoted, and a primary that is cut off may still answer. Set
//     min-replicas-to-write and min-replicas-max-lag, so that such a primary stops.
//     Behind Sentinels a client does not connect to a primary that they do not name:
//     one that was replaced while it was away takes itself for one when it is back.
//     For locks that survive the loss of a server, use package redlock over
//     independent servers.
//   - Restart: with "appendfsync everysec" the last second is lost, with
//     snapshots more, without persistence everything.
//   - Eviction: under any maxmemory-policy but noeviction Redis may remove locks
//     that are held. Open warns of it. With noeviction a full server refuses new
//     locks with its OOM error; renewing, releasing and handing over go on.
//   - A server clock that jumps forward ends leases early, by as much. One that
//     goes back lets them stand longer. Open refuses a server whose clock differs
//     from this machine's by more than a day.
//   - FLUSHALL, DEL and whoever may write these keys.
//   - In a Cluster, a key is not available while its slot has no primary; calls
//     fail until then, and are tried again by those who wait.
//
// # Permissions
//
// A user needs these, on keys and channels with the prefix:
//
//	ACL SETUSER locks on >secret resetkeys ~holdfast:* resetchannels &holdfast:* -@all
//	  +eval +evalsha +time +exists +get +set +del +pttl +pexpire
//	  +hget +hset +hdel +hexists +hgetall +rpush +lrem +lindex +llen +lrange
//	  +publish +spublish +pubsub +subscribe +ssubscribe +unsubscribe +sunsubscribe
//	  +ping +hello +client +select +role +info +scan +cluster +wait
//
// Without the right to subscribe, those who wait ask again and again, at growing
// intervals; without the right to publish, they find their grant when they ask;
// without PUBSUB a dead one is not passed over. SELECT is for a database number,
// ROLE and CLUSTER for a Cluster, SCAN for holdfast ls, INFO for the warnings and
// for redlock, WAIT for ?wait. PING, HELLO and CLIENT are the client library's,
// which does without them. The error for a right that is missing names it.
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
//	master             name of the primary that Sentinels watch: the hosts are
//	                   theirs then, at port 26379 unless they say otherwise
//	sentinel_user, sentinel_password
//	db                 database number
//	ca, cert, key      files in PEM: whom to trust, and who we are (rediss)
//	server_name        that the certificate must be for, if not the host's (rediss)
//
// A Cluster is recognized by itself; one host is enough, several are better.
package redislock
