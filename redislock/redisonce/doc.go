// Package redisonce keeps the records of package once in Redis or Valkey, for all clients
// of the server or the Cluster.
//
//	records := redisonce.New(client, nil) // a rueidis client, which the caller closes
//	receipt, err := once.Runner{Locks: locks, Records: records}.Do(ctx, key, charge)
//
// With a client of go-redis:
//
//	conn, err := goredis.Conn(client)
//	// ...
//	records := redisonce.NewConn(conn, nil)
//
// # How it works
//
// A record is a hash with a time to live: in every case the record expires when the time
// is over by the server's clock. A call is a single script or command on the key of the
// record, so in a Cluster every record is on the node of its own slot.
//
// # What it promises
//
//   - The contract of [once.Records], as long as the server keeps every write that it has
//     confirmed.
//
// # What can go wrong
//
//   - Replicas copy with a delay. A promoted replica may miss the last records, and the
//     effects of the missing records can run again. The same holds for a server that
//     restarts from a snapshot, or from a log that is written to disk once a second
//     (appendfsync everysec).
//   - A server that evicts keys when its memory is full, by a maxmemory-policy such as
//     allkeys-lru or volatile-ttl, loses results. Use noeviction.
//   - If effects must not run twice in any such case, keep the records in the database
//     that the effects change (see [once.SQL]).
package redisonce
