// Package azurelock is a store in Azure Blob Storage, for teams that have a storage account and no
// server.
//
//	import _ "github.com/holdfast-go/holdfast/azurelock"
//
//	locks, err := holdfast.Open(ctx, "azblob://account/container/locks", nil)
//
// # How it works
//
// A key is a blob with the record of package caslock, which has the holders, the queue and the
// highest fencing token. A change is one Put Blob with a condition: If-None-Match creates the
// blob, If-Match replaces the blob if its ETag is as expected. The service refuses every other
// write. Without contention, a lock costs two requests: one PUT to acquire, one PUT to release,
// and a GET if the process has not used the key before. A renewal is one PUT for all claims of a
// process on a key.
//
// The service notifies nobody. The first waiter of the queue reads the blob every half second
// ([Options.Look]), and a waiter at place n after n times as long. Waiters are granted the lock in
// FIFO order.
//
// Claims expire by the clocks of the processes, not by the service: a waiter counts the TTL from
// when it first saw a renewal.
//
// # Why no leases of Azure
//
// A blob in Azure may have a lease. Package azurelock uses ETags instead, because a lease
//
//   - lasts for 15 to 60 seconds or for ever, and cannot have a shorter TTL,
//   - has no fencing token,
//   - has one holder, and so neither readers nor slots,
//   - has no queue, so any waiter may be next.
//
// A program that leases a blob of the store stops the lock: the service then refuses each write,
// and the error names the lease.
//
// # Containers that ignore conditions
//
// An emulator may accept the headers of conditional writes and ignore them. A lock in such a
// container has several holders. So a Store writes two blobs with conditions that do not hold
// before its first lock, and Open fails if the container accepts one of these writes. The error
// names the broken condition.
//
// The test cannot see whether a service checks a condition and writes in one step.
// "holdfast verify --store azblob://account/container/verify" tests that with many processes.
//
// # What it promises
//
//   - Mutual exclusion and FIFO order, while the service keeps its blobs and the conditions of
//     writes.
//   - Fencing tokens that grow. A token is the next number or the microseconds of the clock of
//     the process or the service, whichever is largest. Tokens also grow if a blob is removed,
//     unless a clock was ahead.
//
// # What can go wrong
//
//   - If somebody deletes a blob, its locks end at once. Each holder is notified at its next
//     renewal.
//   - A process that has just started waits for a whole TTL before it acquires the key of a dead
//     holder.
//   - Blobs stay when their locks have ended. A lifecycle rule may delete the blobs under the
//     prefix that nobody has written for two days, if no TTL is longer than a day.
//   - With versioning or soft delete, the account keeps what each renewal replaces. Use an account
//     without both, or let a lifecycle rule delete earlier versions.
//   - If the account fails over to another region, acknowledged writes of the last minutes may be
//     lost, and with them locks.
//
// # URL
//
//	azblob://account/container[/prefix][?...]
//
//	endpoint      the URL of the account in another cloud or in an emulator, such as
//	              http://127.0.0.1:10000/devstoreaccount1
//	credentials   a file with a connection string
//	look          between two reads of a key by its first waiter; default 500ms
//
// The prefix is holdfast/ by default. Credentials come from the first that is there of
//
//   - the file of the parameter credentials,
//   - AZURE_STORAGE_CONNECTION_STRING,
//   - AZURE_STORAGE_KEY, the key of the account,
//   - AZURE_STORAGE_SAS_TOKEN,
//   - Entra ID, as DefaultAzureCredential of the Azure SDK: AZURE_CLIENT_ID and its relatives, a
//     workload identity, a managed identity, or the login of the Azure CLI.
package azurelock
