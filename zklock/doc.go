// Package zklock is a store in ZooKeeper 3.5.3 or later.
//
//	import _ "github.com/holdfast-go/holdfast/zklock"
//
//	locks, err := holdfast.Open(ctx, "zk://h1.example.com,h2.example.com,h3.example.com/app", nil)
//
// To connect without a URL, call [New].
//
// # How it works
//
// A claim is an ephemeral, sequential node below the node of its key. The node's name
// contains the weight, the limit and the public id of the claim. The names alone
// determine the FIFO queue, the holders and the waiters. Acquiring a free lock is one
// round trip, which creates the node and lists the queue. Releasing the lock is a
// second round trip. A waiter watches only nodes that must go before the waiter can
// hold, mostly the node ahead. The waiter holds the lock as soon as it is notified that
// the node has gone.
//
// A process has one session for all claims with TTLs of about the same length. The
// classes are TTLs up to one second, one and a half, two, three, four, six, eight and
// so on. Renewing a group of locks, of any size, costs a sync or two and a transaction
// without changes. The session is twice as long as the TTL, because the process must
// stop trusting the session well before the servers do: see below. When the session
// ends, its claims end and their owners are notified at once. The next claim opens a
// new session, and the new session takes over no claims. While a session lives, a
// cleaner in the process releases claims that their owners have not renewed.
//
// The fencing token is 64 times the number of the transaction that created the node,
// which leaves 64 tokens for hand-offs within a process. Readers that hold together
// share the token of the first reader, unless a semaphore slot came between.
//
// The node of a key is a container. The servers remove the container about a minute
// after its last claim. Every parent node created by the store is a container, too. The
// containers are created together with the first claim, because the servers keep a
// container that never had a child.
//
// The package speaks the ZooKeeper protocol itself, over one connection per session.
// The Go client libraries replace an ended session by a new session, and take no
// contexts. Nor do they report what is certain about a session.
//
// # What it promises
//
//   - Mutual exclusion and growing tokens, as long as a majority of the servers keeps
//     its data. Failures of other servers, of leaders and of clocks do no harm.
//   - A process that is cut off is notified of lost locks before another process
//     acquires them. The TTL must be at least two ticks of the servers (4 s by
//     default). Shorter TTLs have the same guarantee, unless the leader is cut off from
//     the other servers with the process on its side. The answer to a ping does not
//     prove a live session: a server that has lost the leader still answers. So every
//     session sends syncs, which only the leader can answer, and trusts what two syncs
//     prove.
//   - FIFO order over all processes.
//   - Tokens stay below 2^53 for 32,768 elections of a leader.
//
// # What can go wrong
//
//   - A process that dies or is paused keeps its locks until its session ends: after
//     two to three TTLs, plus up to a tick. The servers bound sessions to 2 to 20 ticks
//     (4 s to 40 s). If the servers allow less than the TTL needs, a lock is granted
//     for half of the allowed time and renewed more often. Check warns of such bounds.
//     Configure the same bounds on all servers: a session does not continue on a server
//     with different bounds.
//   - A lock ends with its process. A lock that is to outlive the process
//     (holdfast.MinHold) is refused. Nor can a caller request a token, as Redlock does.
//   - Without a majority, no lock can be acquired or renewed. Held locks end with their
//     sessions.
//   - Deleting nodes by hand breaks locks; the owners are notified. Restoring the
//     servers from older data makes tokens go back.
//   - A waiter known to the servers takes about 60 bytes in every listing of the queue,
//     and every waiter lists the queue once. Thousands of processes on one key cause
//     much traffic.
//
// The tests run with ZooKeeper 3.8.
//
// # Permissions
//
// Nodes are created with all permissions for the user of the URL. Without a user,
// everybody gets all permissions, and every client that reaches the servers can break
// locks. Lock users need the permissions to create, delete, read and write (cdrw) on
// the node of the prefix and the nodes below. Users who only inspect need to read them.
// Without tls the password travels unencrypted: Open warns of this, unless the server is
// on this machine.
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
// The default port is 2181. Missing nodes of chroot and prefix are created.
package zklock
