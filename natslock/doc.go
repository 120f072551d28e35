// Package natslock is a store in NATS JetStream 2.11 or later, for teams that run NATS
// already.
//
//	import _ "github.com/holdfast-go/holdfast/natslock"
//
//	locks, err := holdfast.Open(ctx, "nats://localhost:4222?replicas=3", nil)
//
// Make the stream once, by [Store.Create] or "holdfast init".
//
// # How it works
//
// A key is a subject of one stream, and has one message: the record of package caslock, which
// has the holders, the queue and the highest fencing token. A change is a publish that
// expects the sequence of the last message of the subject. So the sequence of the stream is
// the version of a record. A lock without contention costs two requests: one publish to
// acquire, one publish to release, and a read if the process has not used the key before. A
// renewal is one publish for all claims of a process on a key.
//
// The stream republishes each stored message to a second subject. A process with waiters
// subscribes to that subject of the key, so a hand-over needs no consumer and no poll. The
// process also reads again when its connection is back.
//
// Claims expire by the clocks of the processes, not by the server: a waiter counts the TTL from
// when it first saw a renewal. Each message has a TTL of its own, an hour longer than
// its claims, so that the server removes the records of unused keys.
//
// # What it promises
//
//   - Mutual exclusion and FIFO order, while the stream keeps its messages. With three
//     replicas, locks stand and can be acquired while one server is away.
//   - Fencing tokens that grow. A token is the next number or the microseconds of the server's
//     clock, whichever is larger. Tokens also grow over the removal of a record, unless the clock
//     of the servers goes back by more than an hour.
//   - The stream begins with the time as its sequence, and denies purges and deletes of
//     messages. So a version never returns, not even if somebody deletes the stream and
//     makes a new stream.
//
// # What can go wrong
//
//   - A server acknowledges a message before the message is on the disk. Servers with the
//     default sync_interval of two minutes may lose acknowledged locks if a machine loses power,
//     also with three replicas. Set "sync_interval: always" in the jetstream block of every
//     server. Clients cannot see the setting: [Store.Check] warns unless [Options.Synced] says
//     so. A killed server process loses nothing.
//   - If somebody deletes the stream, all locks end at once. Each holder is notified at its
//     next renewal.
//   - A process that has just started waits for a whole TTL before it acquires the key of a dead
//     holder.
//   - A connection that buffers publishes while it reconnects (nats.ReconnectBufSize) may send
//     a change late. Such a change does nothing if the record has changed since. [New] accepts
//     such connections; calls then fail at the end of their context, not at once.
//
// # URL
//
//	nats://[user:password@]host[:4222][,host...][?...]
//	natss://...   with TLS
//	nats://token@host   with a token in place of user and password
//
//	stream     the name of the stream, and the first word of its subjects; default holdfast
//	replicas   for Create: 1, 3 or 5; default 1
//	synced     true: all servers run with sync_interval: always
//	creds      a file with the credentials of a user
//	ca, cert, key   files in PEM for natss://
package natslock
