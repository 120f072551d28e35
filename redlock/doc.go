// Package redlock is a store that keeps locks on a majority of several stores, so that locks
// survive the failure of a server. The nodes are usually three or five independent Redis
// servers. Any store with fencing tokens ([driver.Ask].Fence) can be a node.
//
//	locks, err := holdfast.Open(ctx, "redlock://redis1:6379,redis2:6379,redis3:6379", nil)
//
// # How it works
//
// Every call goes to all nodes at once. A grant returns as soon as a majority has given the
// same token. Any other answer returns when a majority has decided, and the slower nodes
// have had as long again: at least a millisecond, or ten if the tokens differ. Then a read
// lock, and a repeated request for a held claim, wait for every node, for half a second or
// half of the call's time at most. Calls to slower nodes go on in the background.
//
// A claim is held if a majority of the nodes has granted it. The client proposes a fencing
// token, larger than every token that the client has seen. A node gives the proposed
// token, unless the node has given as large a token before, or the node's clock is past
// the token. Then the node gives a larger token. If a majority has given the same token,
// the claim is held after one round. One round is the usual case, because the proposal is
// a tenth of a second ahead of the client's clock.
//
// A second round follows if the tokens differ, as when the clock of a node is further ahead,
// or if a token may be too small (see below). On a majority of the nodes that were counted,
// the second round raises the claim's token to the largest token. Nodes that were not
// counted have no say in the token, and an answer that may be about another grant of the
// claim is checked. A model in the tests shows by search that the two rules are needed.
//
// A waiting claim queues at every node, and each node grants the claim in turn. When a
// majority has granted the claim, the waiter is woken and asks. If several claims have some
// nodes each, and no claim has a majority, the claim with the most nodes is preferred, and
// among equals the claim with the smallest public id. The losing claims release their nodes
// and queue again.
//
// A node that does not answer in half a second is left out until it answers: the node gets
// one call at a time. The release of a claim is sent to a node after the node has
// answered the Acquire. A release that a node has missed is repeated until the claim has
// expired there.
//
// # Words in the source
//
//   - A bid is an Acquire on its way to a majority, in one or more rounds.
//   - A vote is the answer of a node to a bid.
//   - A contest decides between claims that have some nodes each.
//   - A request is an Acquire under way at one node. It may outlive the bid.
//   - A leftover is a release that a node has not answered. The cleaner of the node repeats it.
//
// # What it promises
//
//   - Mutual exclusion, and tokens that grow with every grant of a key, as long as nodes do
//     not forget. The promise holds through the failure of any minority of the nodes, and
//     through lost and late messages; for the tokens, whatever the clocks do.
//   - A minority of nodes that is down or hangs costs no time. Only locks held by a bare
//     majority of the nodes are lost.
//   - A claim that fewer than a majority confirms is not held. A claim that a majority has
//     lost is lost, and released on the remaining nodes.
//   - FIFO order among waiters that were queued before the next waiter came. The queues of the
//     nodes may differ after several waiters came at the same moment, and while nodes are down
//     or come back. A waiter that then gives way queues again behind waiters that came later.
//   - Waiters are woken by the nodes and do not poll.
//
// # What can go wrong
//
//   - A node that restarts without its claims, or loses the last of them, has forgotten the
//     holders. Such a node does not count for a grant until it has run for the
//     quarantine (15 s). The quarantine must not be shorter than the longest TTL: claims
//     with a longer TTL are refused, and so is a longer [driver.Renewal].Leave. Without a
//     quarantine every node must write each claim to disk before it answers
//     (appendfsync always).
//   - New nodes, too, give their first grant after the quarantine. Until then errors say
//     for each node when the node counts, and Open logs a warning.
//   - Redis counts its uptime by its wall clock: if the clock is set forward meanwhile, the
//     node counts too soon. Claims that are flushed or evicted while the node runs go
//     unnoticed: set maxmemory-policy to noeviction.
//   - The tokens of a node that has forgotten them go on from the node's clock. When
//     the node counts again, the clock must be past all tokens that were given before. So no
//     other clock may be ahead of the node's clock by nine tenths of the quarantine;
//     proposals are ahead of the client's clock by no more than the tenth that is left.
//   - A token given during the quarantine may be below a forgotten token. The claim's token
//     is raised when the node counts: to the time from which the node counts, by the node's
//     clock. To learn the time, the client acquires a token there, with a separate key
//     below holdfast/redlock/. A client that comes for a read lock within the next
//     quarantine does the same, because the read lock may join earlier readers.
//     One gap is left: readers without a majority may keep such a token on a node for
//     longer, and a new client that joins them may get it.
//   - Never use a replica as a node, or servers that fail over to a replica: writes that
//     had not been copied are forgotten, and nobody notices. Each node is a single server,
//     with nothing in common with the other nodes.
//   - Exclusion relies on clocks that run at the same rate, to one in a hundred. A node
//     whose clock is set forward expires its claims too soon. One such node does not harm a
//     claim that has one node more than a majority.
//   - A process that is paused for longer than the TTL may go on before it notices that its
//     lock is lost, as with any store. Check the fencing token where data is written.
//   - There are no slots (semaphores): a majority cannot count. Of 2 slots, 3 claims can
//     have 2 of 3 nodes each, all different. Slots are refused; use a single server.
//   - Readers who hold together share a token while the nodes that granted the first reader
//     are well. If not, a later reader may have a larger token, and a check that goes by the
//     largest token refuses the earlier readers. No writer holds between the readers.
//   - A lock held by a bare majority is lost with one node. Locks that are acquired while
//     all nodes are well have more than a bare majority.
//   - A node must name the holder in a refusal. If the node does not, ties among waiters are
//     broken by chance, which takes longer.
//   - An even number of nodes works, and is no better than one node less. Two waiting
//     claims may get half of the nodes each. The claim that gives way goes to the end of
//     the queue at its half, so later claims may be granted first.
//
// # URL
//
//	redlock://user:password@redis1:6379,redis2:6379,redis3:6379/0?prefix=app
//	redlock://?node=redis://redis1:6379&node=file:///mnt/b/locks&node=...
//
// The first form names Redis servers. Every server is opened as redis://, with the same
// user, database and parameters. Give the port of all hosts or of no host.
//
// The second form takes the URL of any store for each node, with & written as %26 and % as
// %25. IPv6 addresses need the second form.
//
// A majority of the nodes has to answer when the store is opened. The remaining nodes are
// opened once the nodes answer. The parameters of redlock itself are
//
//	quarantine=15s         how long a node is left out after a restart, as above;
//	                       0 for nodes that forget nothing
//	scheme=redis|rediss    for the first form: whether the servers speak TLS
package redlock
