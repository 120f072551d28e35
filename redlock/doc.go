// Package redlock is one store made of several others, of which a majority
// decides: locks that outlive the failure of a server. Its nodes are usually
// three or five Redis servers, each on its own, but any stores will do that
// have fencing tokens to ask for ([driver.Claim].Fence).
//
//	locks, err := holdfast.Open(ctx, "redlock://redis1:6379,redis2:6379,redis3:6379", nil)
//
// # How it works
//
// Every call goes to all nodes at the same time and returns when a majority has
// decided it and the others have had as long again, a millisecond at least, ten
// if tokens differ; a grant at once. What is left goes on in the background.
//
// A claim is held if a majority of the nodes has granted it. The client proposes
// a fencing token, larger than all it has seen, which a node gives unless it has
// given as large a one before, or its clock is past it; then it gives a larger
// one. If the majority has given the same, that is the token, after one round:
// the usual case, because the proposal is a tenth of a second ahead of the
// client's clock. A node whose clock is ahead by more makes a second round
// necessary, and does no other harm: of the tokens that differ the largest is
// taken, once a majority of those that were counted has raised the claim's token
// to it. Nodes that were not counted have no say in that, and an answer that may
// be about another grant of the claim is checked; a model in the tests shows by
// search that neither can be left out.
//
// A claim that waits stands in line at every node, and the nodes push it to the
// front. When a majority of them has let it in, it is woken and asks. If several
// claims have some nodes each, so that none can go on, the one with the most
// nodes is let have them, and of several the one with the smallest public id;
// the others release what they have and stand in line again.
//
// A node that does not answer in half a second is left out until it answers: it
// gets one call at a time. A release follows the grant that it ends: it is sent
// to a node when that has answered. One that a node has missed is repeated until
// the claim has run out there.
//
// # What it promises
//
//   - Mutual exclusion, and tokens that grow with every grant of a key, as long
//     as nodes do not forget: through the failure of any minority of them, lost
//     and late messages, and, for the tokens, whatever the clocks do.
//   - A minority that is down or hangs costs no time, and no locks but those that
//     have just a majority.
//   - A claim that fewer than a majority confirms is not held. One that a
//     majority has lost is lost, and released on the others.
//   - First come, first served, for those who were told to wait before the next
//     one came. Among those who come at the same moment, and while nodes are
//     down or come back, the order may differ, as that of the nodes does.
//   - Waiters are woken by the nodes and do not poll.
//
// # What can go wrong
//
//   - A node that restarts without its claims, or loses the last of them, has
//     forgotten who holds what. It does not count for a grant until it has run
//     for the quarantine (15 s), which must not be shorter than the longest
//     TTL; claims with a longer one are refused, those that [driver.Claim].Leave
//     leaves behind included. Without quarantine every node must write each
//     claim to disk before it answers (appendfsync always). So a new set of
//     nodes gives its first grant after the quarantine. Redis counts how long it
//     has run by its wall clock: one that is set forward meanwhile counts too
//     soon. Claims that are flushed or evicted while the node runs go unnoticed:
//     set maxmemory-policy to noeviction.
//   - The tokens of a node that has forgotten them go on from its clock. When it
//     counts again that must be past all tokens that were given before, so no
//     other clock may be ahead of it by nine tenths of the quarantine; what
//     clients propose is ahead of theirs by no more than the tenth that is left.
//   - Never make a node of a replica, or of servers that fail over to one: what
//     had not been copied is forgotten, and nobody sees that it was. Each node
//     is a single server, with nothing in common with the others.
//   - Exclusion relies on clocks that run at the same rate, to one in a hundred.
//     A node whose clock is set forward lets go of its claims too soon. One such
//     node is no harm to a claim that has one node more than a majority.
//   - A process that is paused for longer than the TTL may go on before it
//     notices that its lock is lost, as with any store. Let what you protect
//     check the fencing token.
//   - There are no slots (semaphores): a majority cannot count. Of 2 slots, 3
//     claims can have 2 of 3 nodes each, all different. They are refused; use a
//     single server for them.
//   - Readers who hold together share a token while the nodes that let in the
//     first of them are well. If not, one who comes later may have a larger one,
//     and a check that goes by the largest refuses those who came before.
//   - A lock that has just a majority is lost with one node of it. Locks that
//     are taken while all nodes are well have more.
//   - A node must say in a refusal who is in the way. If it does not, ties among
//     waiters are broken by chance, which takes longer.
//   - An even number of nodes works, and is no better than one node less.
//
// # URL
//
//	redlock://user:password@redis1:6379,redis2:6379,redis3:6379/0?prefix=app
//	redlock://?node=redis://redis1:6379&node=file:///mnt/b/locks&node=...
//
// The first names Redis servers, each of which is opened as redis://, with the
// same user, database and parameters; give the port of all hosts or of none. The
// second takes the URL of any store for each node, with & written as %26 and %
// as %25; IPv6 addresses need it. A majority has to answer when it is opened;
// the others are opened when they do. The parameters of redlock itself are
//
//	quarantine=15s         how long a node is left out after a restart, as above;
//	                       0 for nodes that forget nothing
//	scheme=redis|rediss    for the first form: whether the servers speak TLS
package redlock
