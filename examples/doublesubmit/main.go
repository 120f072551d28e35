// Doublesubmit takes orders from a form, each once, however often the form is sent
// and to whichever of several servers. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/web"
	_ "github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/redisonce"
)

// A config is what the servers of a shop have in common, and listen.
type config struct {
	redis  string        // for locks and records
	orders string        // the file of the orders
	listen string        // an address
	ttl    time.Duration // of a lock, after the death of its server
	wait   time.Duration // for the response to the same form, before there is 409
}

func main() {
	var c config
	flag.StringVar(&c.redis, "redis", "redis://localhost:6379", "URL of the Redis server")
	flag.StringVar(&c.orders, "orders", "orders.db", "SQLite file of the orders")
	flag.StringVar(&c.listen, "listen", "localhost:8080", "address to listen on")
	flag.DurationVar(&c.ttl, "ttl", 5*time.Second, "how long the lock outlives a dead server")
	flag.DurationVar(&c.wait, "wait", 10*time.Second, "for the response to the same form, before there is 409")
	work := flag.Duration("work", 3*time.Second, "how long an order takes")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, slowly(*work)); err != nil {
		log.Fatal(err)
	}
}

// slowly is work that takes a while, such as to ask a payment service.
func slowly(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run serves until ctx ends.
func run(ctx context.Context, c config, work func(context.Context) error) error {
	locks, err := holdfast.Open(ctx, c.redis, &holdfast.Options{Prefix: "shop/", TTL: c.ttl})
	if err != nil {
		return err
	}
	defer locks.Close()
	option, err := rueidis.ParseURL(c.redis)
	if err != nil {
		return err
	}
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer client.Close()
	orders, err := openOrders(ctx, c.orders)
	if err != nil {
		return err
	}
	defer orders.db.Close()

	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	s := shop{orders: orders, work: work}
	return web.Serve(ctx, listener, s.handler(locks, redisonce.New(client, nil), c.wait))
}
