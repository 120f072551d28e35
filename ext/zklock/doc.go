// Package zklock is a store in ZooKeeper 3.5.3 or later.
//
//	import _ "github.com/holdfast-go/holdfast/ext/zklock"
//
//	locks, err := holdfast.Open(ctx, "zk://h1.example.com,h2.example.com,h3.example.com/app", nil)
//
// Without a URL: [New].
//
// # How it works
//
// A claim is an ephemeral, sequential node below the node of its key. Its name has
// its weight, its limit and its public id; who stands in line, who holds and who
// must wait follows from the names alone. To take a lock that nobody else wants is
// one round trip, which makes the node and lists the line, and to release it is
// another. Whoever waits watches only the nodes of which one must go before it gets
// in, mostly the one ahead, and has the lock as soon as it hears of that.
//
// A process has one session for all claims with TTLs of about the same length: up
// to one second, one and a half, two, three, four, six, eight and so on. Renewing
// any number of locks is a sync or two, and a transaction that changes nothing. The
// session is twice as long as the TTL, because the process must stop believing in it
// well before the servers do: see below. When it ends, its claims end, their owners
// are told at once, and the next claim opens another; nothing is taken over.
//
// The fencing token is 64 times the number of the transaction that made the node,
// so there are 64 for hand-offs within a process. Readers that hold together share
// that of the first of them, as far as no slot of a semaphore came between.
//
// The node of a key is a container, which the servers remove a minute or so after
// its last claim. So is every node above that was not there before. They are made
// together with the first claim: the servers keep a container that never had a child.
//
// It speaks the protocol of ZooKeeper itself, over one connection for each session.
// The client libraries for Go begin another session when one has ended, take no
// contexts, and do not tell what is known of a session for certain.
//
// # What it promises
//
//   - Mutual exclusion and growing tokens as long as a majority of the servers keeps
//     its data, whatever happens to the others, to leaders and to clocks.
//   - A process that is cut off is told of its losses before another gets in, for
//     TTLs of at least two ticks of the servers (4 s as ZooKeeper is shipped); shorter
//     ones too, unless the leader is cut off from the others with that process on its
//     side. An answer to a ping does not say that the session lives: a server that has
//     lost the leader goes on answering. So each session sends syncs, which only the
//     leader can answer, and believes in what two of them prove.
//   - First come, first served, over all processes.
//   - Tokens stay below 2^53 for 32,768 elections of a leader.
//
// # What can go wrong
//
//   - A process that dies or is paused keeps its locks until its session ends: after
//     two to three TTLs, and up to a tick. The servers have bounds for sessions, from 2
//     to 20 ticks (4 s to 40 s). Where they allow less than a TTL wants, it is granted
//     for half of what they allow, and renewed more often; Check warns of that. All
//     servers should have the same bounds: a session does not go on over one that has
//     others.
//   - A lock ends with its process: one that is to outlive it (holdfast.AtLeast) is
//     refused. Nor can a token be asked for, as Redlock does.
//   - Without a majority nothing can be locked or renewed. Held locks end when their
//     sessions do.
//   - Who deletes nodes by hand breaks locks; their owners are told. An operator who
//     restores the servers from older data makes tokens go back.
//   - A waiter that the servers know takes about 60 bytes of every list of its line,
//     and each of them lists it once: thousands of processes on one key are many bytes.
//
// Its tests run with ZooKeeper 3.8.
//
// # Permissions
//
// Nodes are made with all permissions for the user of the URL, or for everybody if
// there is none: then whoever reaches the servers can break locks. Everybody who
// locks needs the permissions to create, delete, read and write (cdrw) on the node of
// the prefix and those below, and those who only look, to read. The password goes over the network as it
// is: use tls.
//
// # URL
//
//	zk://user:password@h1:2181,h2:2181,h3:2181/chroot?parameters
//
//	prefix=holdfast      node under which the keys are; below chroot
//	acl=...              who may do what with the nodes, as scheme:id:permissions with
//	                     commas between, such as auth::cdrwa,world:anyone:r for the
//	                     user, and for all others to look; + is written %2B
//	tls=false            encrypt, with a server that proves its name
//	ca, cert, key        files in PEM: whom to trust, and who we are
//	server_name          the name to be proved, if it is not that of the host
//
// The port is 2181 unless the URL has another. What is missing of chroot and prefix
// is made.
package zklock
