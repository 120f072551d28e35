// Package redisonce keeps the records of package once in Redis or Valkey, for all
// who share the server or the Cluster.
//
//	records := redisonce.New(client, nil) // a rueidis client, which the caller closes
//	receipt, err := once.Do(ctx, locks, records, key, 24*time.Hour, charge)
//
// # How it works
//
// A record is a hash, with a time to live: whatever happens, it goes when its time
// is over by the server's clock. Each call is one script, or one command, on that
// one key, so that in a Cluster each record is on the node of its own slot.
//
// # What it promises
//
//   - The contract of [once.Records], as long as the server keeps what it has
//     answered.
//
// # What can go wrong
//
//   - Replicas copy with a delay. When one is promoted, it may not have the last
//     records, whose effects can run again. The same goes for a server that
//     restarts from a snapshot, or from a log that is brought to the disk once a
//     second (appendfsync everysec).
//   - A server that removes keys when its memory is full, by a maxmemory-policy such
//     as allkeys-lru or volatile-ttl, forgets results. Use noeviction.
//   - Effects that must not be run twice in any such case need records in the
//     database that they change (see [once.SQL]).
package redisonce
