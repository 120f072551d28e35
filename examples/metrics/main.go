// Metrics shows how to watch locks with Prometheus: some workers share a few
// accounts, and /metrics tells how many of them wait and hold, and for how long.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	_ "github.com/holdfast-go/holdfast/all"
	"github.com/holdfast-go/holdfast/otellock"
)

func main() {
	store := flag.String("store", "mem://", "the URL of the store")
	listen := flag.String("listen", "localhost:9464", "the address of /metrics")
	workers := flag.Int("workers", 8, "how many work at the same time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := net.Listen("tcp", *listen)
	if err == nil {
		fmt.Printf("http://%s/metrics\n", listener.Addr())
		err = run(ctx, *store, listener, *workers)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run serves /metrics and lets the workers work until ctx ends.
func run(ctx context.Context, store string, listener net.Listener, workers int) error {
	locks, metrics, err := observed(ctx, store)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { work(ctx, locks) })
	}
	err = server.Serve(listener)
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, locks.Close())
}

// observed opens a store. The handler tells Prometheus about its locks, the log
// about those that are lost.
func observed(ctx context.Context, store string) (*holdfast.Locker, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	trace, err := otellock.New(&otellock.Options{
		Meters: metric.NewMeterProvider(metric.WithReader(reader)),
		Name:   otellock.KeyPrefix("/"),
	})
	if err != nil {
		return nil, nil, err
	}
	locks, err := holdfast.Open(ctx, store, &holdfast.Options{Trace: trace})
	return locks, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}

// work changes accounts, one at a time, until ctx ends.
func work(ctx context.Context, locks *holdfast.Locker) {
	for ctx.Err() == nil {
		account := fmt.Sprintf("account/%d", rand.IntN(3))
		err := locks.Do(ctx, account, func(ctx context.Context) error {
			select {
			case <-time.After(rand.N(100 * time.Millisecond)):
			case <-ctx.Done():
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			slog.Error("an account could not be changed", "account", account, "error", err)
		}
	}
}
