// Package demo plays a flash sale: several server processes sell one stock to
// many buyers at once, first without a lock, then with a sync.Mutex in each
// process, then with Holdfast. Command holdfast shows it as "holdfast demo".
//
// # What is real
//
// Each server is a process of its own: the same program, started again, which
// ends up in [Serve]. They share a stock in an SQLite database on disk. Buyers
// are HTTP clients that all come at the same moment, through a reverse proxy
// that sends them to the servers in turn. Nothing is sold but by this:
//
//	SELECT stock ...          is anything left?
//	POST /charge              take the money
//	UPDATE stock, INSERT order   write what was seen, less one
//
// Between the look and the write others look and write too. That is how shops
// oversell, and nothing here helps it along: sold is the number of orders that
// the database has at the end.
//
// # What is made up
//
// The payment provider is a handler in the parent process which takes three
// milliseconds to say yes. Real ones take longer, which makes matters worse.
//
// # The pause
//
// A lock is a lease, so a server that stands still for longer than its TTL
// loses it and cannot know. In the scene that Config.Pause adds, the parent
// stops a server with SIGSTOP while that waits for its payment: it holds the
// lock, has seen the last item, and is about to write. Another server gets the
// lock after the TTL and sells the item. Then the first goes on. The scene is
// played twice; the second time the database remembers the largest fencing
// token that it has seen, and refuses smaller ones.
package demo
