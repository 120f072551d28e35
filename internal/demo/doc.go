// Package demo plays a flash sale. Several server processes sell one stock to many buyers
// at once: first without a lock, then with a sync.Mutex in each process, then with
// Holdfast. The command shows the sale as "holdfast demo".
//
// # What is real
//
// Each server is a separate process: the same program, started again, which calls [Serve].
// Buyers are HTTP clients that all come at the same moment. A reverse proxy sends the
// buyers to the servers in turn. The servers share a stock, and sell in three steps:
//
//	GET  /stock    is anything left?
//	POST /charge   take the money
//	POST /order    write the order, and the stock that was seen, less one
//
// Between the look and the write, other servers look and write too. This race makes shops
// oversell, and the demo does nothing to provoke the race. The number sold is the number
// of orders in the shop at the end.
//
// # What is made up
//
// The shop stands for the database of the servers. The shop lives in the parent process,
// and runs each request as one transaction. The payment provider is a handler in the
// parent process, too. The payment provider takes three milliseconds to confirm a payment.
// Real payments take longer, which makes matters worse.
//
// # The pause
//
// A lock is a lease: a server that stands still for longer than the TTL loses the lock and
// cannot know. In the scene that Config.Pause adds, the parent stops a server with SIGSTOP
// during the payment. At that moment the server holds the lock, has seen the last item,
// and is about to write. A second server acquires the lock after the TTL and sells the
// item. Then the first server goes on. The scene is played twice. The second time, the
// shop remembers the largest fencing token seen so far and refuses smaller tokens.
package demo
