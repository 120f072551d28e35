// Package dynamodblock is a store in Amazon DynamoDB, for teams on AWS that have no server for
// locks.
//
//	import _ "github.com/holdfast-go/holdfast/dynamodblock"
//
//	locks, err := holdfast.Open(ctx, "dynamodb://locks?region=eu-west-1", nil)
//
// Make the table once, by "holdfast init", by [Store.Create], or with the statements of
// [Store.Schema]. The table has the partition key "name", a string, and no sort key.
//
// # How it works
//
// A key is an item with the record of package caslock, which has the holders, the queue and the
// highest fencing token. The item also has a version, which is random and never returns. A change
// is one PutItem with a condition: the item has the expected version, or there is no item.
// DynamoDB refuses every other PutItem, and returns the present item in the refusal. So a refused
// change needs no further read. Without contention, a lock costs two requests: one PutItem to
// acquire, one PutItem to release, and a GetItem if the process has not used the key before. A
// renewal is one PutItem for all claims of a process on a key. All reads are strongly consistent.
//
// DynamoDB notifies nobody. The first waiter of the queue reads the item every half second
// ([Options.Look]), and a waiter at place n after n times as long. Waiters are granted the lock in
// FIFO order.
//
// Claims expire by the clocks of the processes, not by DynamoDB: a waiter counts the TTL from when
// it first saw a renewal. The TTL of DynamoDB deletes items hours or days late, and only removes
// the items of keys that nobody uses: the attribute "expires" is at least a day after the end of
// the last claim.
//
// # Engines that ignore conditions
//
// Some emulators and proxies may ignore the conditions of writes. A lock there has several holders.
// So a Store writes two items with conditions that do not hold before its first lock, and Open
// fails if the engine accepts one of these writes. The error names the broken condition.
//
// # What it promises
//
//   - Mutual exclusion and FIFO order, while the table keeps its items and the conditions of
//     writes, and all processes use the table in one region.
//   - Fencing tokens that grow. A token is the next number or the microseconds of the clock of
//     the process or DynamoDB, whichever is largest. Tokens also grow if an item is removed,
//     unless a clock was ahead.
//
// # What can go wrong
//
//   - A global table with eventual consistency (MREC) replicates later, and the last writer wins.
//     Processes in two regions can then hold one lock. Let all processes use one region, or make
//     the global table with strong consistency (MRSC). [Store.Check] warns of MREC.
//   - If somebody deletes an item, its locks end at once. Each holder is notified at its next
//     renewal. A restored backup is a new table, in which old locks may stand for a TTL.
//   - A process that has just started waits for a whole TTL before it acquires the key of a dead
//     holder.
//   - A table with too little capacity throttles requests. A holder whose renewals are throttled
//     for a TTL loses its lock. On-demand capacity, which Create chooses, has no such limit for
//     the keys of usual programs: one item takes about 1,000 writes a second.
//   - An item has at most 400 KB. That is a queue of about a thousand waiters on one key.
//
// # URL
//
//	dynamodb://table[?...]
//
//	region        default: as for every AWS tool; us-east-1 with an endpoint
//	prefix        before the names of all items, without a slash; default holdfast
//	endpoint      an engine other than AWS, such as http://localhost:8000
//	credentials   a file with credentials, as ~/.aws/credentials is
//	profile       a profile of the shared files
//	look          between two reads of a key by its first waiter; default 500ms
//
// Credentials and everything else come from the environment and the shared files, as for every AWS
// tool: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, AWS_CA_BUNDLE, the role of a machine
// or a pod.
package dynamodblock
