// Package s3lock is a store in Amazon S3, or in any service of the S3 protocol with conditional
// writes, for teams that have a bucket and no server.
//
//	import _ "github.com/holdfast-go/holdfast/s3lock"
//
//	locks, err := holdfast.Open(ctx, "s3://bucket/locks?region=eu-west-1", nil)
//
// # How it works
//
// A key is an object with the record of package caslock, which has the holders, the queue and the
// highest fencing token. A change is one PUT with a condition: If-None-Match creates the
// object, If-Match replaces the object if its ETag is as expected. The service refuses every
// other PUT. Without contention, a lock costs two requests: one PUT to acquire, one PUT to
// release, and a GET if the process has not used the key before. A renewal is one PUT for all
// claims of a process on a key.
//
// The service notifies nobody. The first waiter of the queue reads the object every half second
// ([Options.Look]), and a waiter at place n after n times as long. Waiters are granted the lock in
// FIFO order.
//
// Claims expire by the clocks of the processes, not by the service: a waiter counts the TTL from
// when it first saw a renewal.
//
// # Buckets that ignore conditions
//
// Some services and emulators accept the headers of conditional writes and ignore them. A lock in
// such a bucket has several holders. So a Store writes two objects with conditions that do not
// hold before its first lock, and Open fails if the bucket accepts one of these writes. The
// error names the broken condition.
//
// The test cannot see whether a service checks a condition and writes in one step.
// "holdfast verify --store s3://your-bucket/verify" tests that with many processes.
//
// # What it promises
//
//   - Mutual exclusion and FIFO order, while the service keeps its objects and the conditions of
//     writes.
//   - Fencing tokens that grow. A token is the next number or the microseconds of the clock of
//     the process or the service, whichever is largest. Tokens also grow if an object is removed,
//     unless a clock was ahead.
//
// # What can go wrong
//
//   - If somebody deletes an object, its locks end at once. Each holder is notified at its next
//     renewal.
//   - A process that has just started waits for a whole TTL before it acquires the key of a dead
//     holder.
//   - Objects stay when their locks have ended. A lifecycle rule may remove the objects under the
//     prefix that nobody has written for two days, if no TTL is longer than a day.
//   - A bucket with versions keeps every version of an object, and each renewal writes a version.
//     Use a bucket without versions, or let a lifecycle rule remove noncurrent versions.
//   - Replication to a second bucket comes later than the write. Locks in the two buckets are
//     different locks.
//
// # URL
//
//	s3://bucket[/prefix][?...]
//
//	endpoint      a service other than AWS, such as https://s3.example.com
//	region        default: as for every AWS tool; us-east-1 with an endpoint
//	credentials   a file with credentials, as ~/.aws/credentials is
//	profile       a profile of the shared files
//	path_style    with an endpoint: the bucket is in the path; default true
//	look          between two reads of a key by its first waiter; default 500ms
//
// The prefix is holdfast/ by default. Credentials and everything else come from the environment
// and the shared files, as for every AWS tool: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_S3,
// AWS_CA_BUNDLE, the role of a machine or a pod.
package s3lock
