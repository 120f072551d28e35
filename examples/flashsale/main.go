// Flashsale sells a few items to many buyers at once, by several web servers that share
// one Redis. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/web"
	"github.com/holdfast-go/holdfast/redislock"
)

const usage = `usage:
  flashsale serve   run one web server of the shop
  flashsale buy     open the sale, send all buyers at once, and count
`

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "serve":
			return serve(ctx, args[1:], out)
		case "buy":
			return buy(ctx, args[1:], out)
		}
	}
	return fmt.Errorf("got %q, want serve or buy\n%s", args, usage)
}

// serve runs one web server until ctx ends.
func serve(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	url := flags.String("redis", "redis://localhost:6379", "URL of the Redis server")
	listen := flags.String("listen", "localhost:8080", "address to listen on")
	guard := flags.String("guard", "lock", "how to guard the stock: none, mutex or lock")
	pay := flags.Duration("pay", 3*time.Millisecond, "how long a payment takes")
	if err := parse(flags, args); err != nil {
		return err
	}

	option, err := rueidis.ParseURL(*url)
	if err != nil {
		return fmt.Errorf("-redis: %w", err)
	}
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer client.Close()
	store, err := redislock.New(client, nil)
	if err != nil {
		return err
	}
	locks, err := holdfast.New(store, &holdfast.Options{Prefix: "flashsale/"})
	if err != nil {
		return err
	}
	defer locks.Close()

	s := shop{stock: stock{client}, pay: *pay}
	if s.guard = guards(locks)[*guard]; s.guard == nil {
		return fmt.Errorf("-guard %s is none of none, mutex and lock", *guard)
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s\n", listener.Addr())
	return web.Serve(ctx, listener, s.handler())
}

// parse parses options and refuses further arguments.
func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%s takes options only, got %q", flags.Name(), flags.Args())
	}
	return err
}
