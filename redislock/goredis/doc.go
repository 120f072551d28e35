// Package goredis keeps locks in Redis through an application's own go-redis v9 client.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := goredis.New(client, nil)
//	// ...
//	locks, err := holdfast.New(store, nil)
//
// Package redislock documents the store, its promises and what can go wrong. Stores of
// both client libraries share their locks. The records of package redisonce take the same
// client through [Conn]. The store needs no settings of the client, and Close leaves the
// client alone.
//
// # Clients
//
// Use a client of one server (redis.NewClient), of a primary with Sentinels
// (redis.NewFailoverClient) or of a cluster (redis.NewClusterClient). With a redis.Ring
// every call fails: while a server does not answer, a Ring looks for its keys on the
// remaining servers, so a lock would be granted twice.
//
// # What is different from rueidis
//
//   - A command takes a connection of the client's pool for as long as the command runs.
//     With more goroutines than PoolSize (by default ten for each CPU), goroutines wait
//     for a connection, and the wait counts as the store's time.
//   - One more connection listens for grants and losses; in a cluster, one for every
//     primary with a contended key. The store pings the connection every three seconds
//     and replaces the connection if it fails.
//   - Every call ends with its context. go-redis waits for a server that hangs until
//     ReadTimeout, even after the context has ended. So every command runs in a
//     goroutine, which is left behind with its connection until then; with
//     ContextTimeoutEnabled until the deadline, which package holdfast sets to a sixth of
//     the TTL or a second, whichever is less. Without a cluster, ContextTimeoutEnabled also
//     spares the goroutine where nobody can cancel the context, as in Unlock.
//   - If the server refuses connections, go-redis retries for about two seconds
//     (DialerRetries, MaxRetries) before returning an error; until then only the log of
//     go-redis says why. With less time, a call only reports that the server has not
//     answered.
//   - go-redis repeats a command if the connection breaks. Every script may run twice,
//     with the same result.
package goredis
