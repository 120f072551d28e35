// Program cron sends invoices on a schedule. The program runs on every replica of a service,
// and one replica sends the invoices of a tick.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast"
	_ "github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/schedlock"
	_ "github.com/holdfast-go/holdfast/sqlitelock"
)

func main() {
	flags := flag.NewFlagSet("cron", flag.ExitOnError)
	store := flags.String("store", "sqlite://"+filepath.Join(os.TempDir(), "invoice-locks.db"), "where the replicas meet, such as redis://localhost:6379")
	spec := flags.String("schedule", "*/2 * * * * *", "seconds, minutes, hours, days, months and weekdays of the ticks")
	_ = flags.Parse(os.Args[1:])

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *store, *spec); err != nil {
		log.Fatal(err)
	}
}

// run schedules the job until ctx ends.
func run(ctx context.Context, store, spec string) error {
	schedule, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(spec)
	if err != nil {
		return err
	}
	locks, err := holdfast.Open(ctx, store, &holdfast.Options{TTL: 5 * time.Second})
	if err != nil {
		return err
	}
	job := schedlock.Job{
		Locks:    locks,
		Name:     "invoices",
		Schedule: schedule,
		Report: func(tick time.Time, err error) {
			if err != nil && !errors.Is(err, schedlock.ErrTaken) {
				log.Printf("%s: %v", tick.Format(time.TimeOnly), err)
			}
		},
	}
	scheduler := cron.New()
	scheduler.Schedule(schedule, cron.FuncJob(job.Func(ctx, sendInvoices)))
	scheduler.Start()
	<-ctx.Done()
	<-scheduler.Stop().Done() // when the current run has ended
	return locks.Close()
}

// sendInvoices sends the invoices due by the tick. The token goes with every write, so the
// database refuses a replica that was paused and has been overtaken.
func sendInvoices(ctx context.Context) error {
	tick, _ := schedlock.Tick(ctx)
	lock, _ := holdfast.FromContext(ctx)
	_, err := fmt.Printf("%s invoices sent by process %d with token %d\n",
		tick.UTC().Format(time.RFC3339), os.Getpid(), lock.Fence())
	return err
}
