package otellock_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/otellock"
)

func Example() {
	reader := metric.NewManualReader() // in earnest, an exporter
	trace, err := otellock.New(&otellock.Options{
		Meters: metric.NewMeterProvider(metric.WithReader(reader)),
		Name:   otellock.KeyPrefix("/"), // "account" for "account/42"
	})
	if err != nil {
		log.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	locks, err := holdfast.New(memlock.New(), &holdfast.Options{
		Trace: holdfast.JoinTraces(trace, holdfast.LogTrace(logger)),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	ctx := context.Background()
	err = locks.Do(ctx, "account/42", func(ctx context.Context) error {
		var all metricdata.ResourceMetrics
		if err := reader.Collect(ctx, &all); err != nil {
			return err
		}
		for _, m := range all.ScopeMetrics[0].Metrics {
			if m.Name == "holdfast.lock.held" {
				point := m.Data.(metricdata.Sum[int64]).DataPoints[0]
				name, _ := point.Attributes.Value("holdfast.lock.name")
				fmt.Println(m.Name, name.AsString(), point.Value)
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: holdfast.lock.held account 1
}
