// Package goredis keeps locks in Redis through a client of go-redis v9 that an
// application has already.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	locks := holdfast.New(goredis.New(client, nil), nil)
//
// The store is that of package redislock, which says how it works, what it
// promises and what can go wrong; stores of both libraries share their locks.
// It needs no settings of the client, and leaves the client alone when it is
// closed.
//
// # Clients
//
// A client of one server (redis.NewClient), of a primary that Sentinels watch
// (redis.NewFailoverClient) and of a cluster (redis.NewClusterClient) will do.
// A redis.Ring is refused with each call: while one of its servers does not
// answer it looks for that server's keys on the others, and a lock would be
// granted twice.
//
// # What is different from rueidis
//
//   - Each command takes a connection of the client's pool for as long as it
//     runs. With more goroutines than PoolSize, ten for each CPU unless it is
//     set, some wait for one, and that time counts as the store's.
//   - One more connection listens for grants and losses, of a cluster one for
//     each primary that has a key in demand. The store asks it for a sign of
//     life every three seconds and replaces it if it fails.
//   - Every call ends with its context. By itself go-redis waits for a server
//     that hangs until ReadTimeout all the same, so each command runs in a
//     goroutine, which is left behind with its connection until then. With
//     ContextTimeoutEnabled go-redis keeps the deadline, and a command costs a
//     fifth less; but a call that is cancelled while the server hangs ends only
//     at the deadline, which package holdfast sets to a sixth of the TTL or a
//     second, whichever is less.
//   - go-redis sends a command again if its connection breaks. Every script
//     may run twice, and says the same.
package goredis
