// Package gcslock is a store in Google Cloud Storage, for teams that have a bucket and no server.
//
//	import _ "github.com/holdfast-go/holdfast/gcslock"
//
//	locks, err := holdfast.Open(ctx, "gs://bucket/locks", nil)
//
// # How it works
//
// A key is an object with the record of package caslock, which has the holders, the queue and the
// highest fencing token. A change is one upload with a condition on the generation:
// ifGenerationMatch=0 creates the object, and every other number replaces the object if its
// generation is as expected. The service refuses every other upload. A generation never returns,
// so a late write cannot pass for an earlier one. Without contention, a lock costs two uploads:
// one to acquire, one to release, and a download if the process has not used the key before. A
// renewal is one upload for all claims of a process on a key.
//
// The service notifies nobody. The first waiter of the queue reads the object every half second
// ([Options.Look]), and a waiter at place n after n times as long. Waiters are granted the lock in
// FIFO order.
//
// Claims expire by the clocks of the processes, not by the service: a waiter counts the TTL from
// when it first saw a renewal.
//
// The package speaks HTTP to the JSON and XML APIs. The client library of Google would add 27 MB
// to a program, most of them gRPC.
//
// # One write a second
//
// Google Cloud Storage accepts about one write a second to one object, and answers 429 beyond. A
// write with that answer was not carried out. The store sends the write again after a quarter to
// half a second, as long as its call has the time. So a key is locked and unlocked about every two
// seconds at most, and a release directly after the acquisition takes a second. A renewal competes
// with the writes of waiters: with n waiters, choose a TTL of 6(n+1) seconds or longer, and a minute
// at least.
//
// # Buckets that ignore conditions
//
// Some emulators and proxies accept conditions and ignore them. A lock in such a bucket has several
// holders. So a Store writes two objects with conditions that do not hold before its first lock,
// and Open fails if the bucket accepts one of these writes. The error names the broken condition.
//
// The test cannot see whether a service checks a condition and writes in one step.
// "holdfast verify --store gs://your-bucket/verify" tests that with many processes.
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
//   - A bucket with versions or soft delete keeps every generation of an object, and each renewal
//     writes a generation. Use a bucket without both: soft delete is on by default.
//   - A bucket with a retention policy refuses to replace an object.
//
// # URL
//
//	gs://bucket[/prefix][?...]
//
//	endpoint   a service other than https://storage.googleapis.com
//	look       between two reads of a key by its first waiter; default 500ms
//
// The prefix is holdfast/ by default. Credentials come from the environment, as for every Google
// tool: GOOGLE_APPLICATION_CREDENTIALS, the login of gcloud, the account of a machine or a pod.
// STORAGE_EMULATOR_HOST names an emulator. The package sends no credentials to an emulator, nor to
// an endpoint that begins with http://.
package gcslock
