package schedlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/schedlock"
)

// Without a scheduler: each replica does this, and one of them runs each tick.
func ExampleJob_Loop() {
	ctx, stop := context.WithCancel(context.Background())
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	job := schedlock.Job{Locks: locks, Name: "report", Schedule: schedlock.Every(10 * time.Millisecond)}
	err = job.Loop(ctx, func(ctx context.Context) error {
		fmt.Println("one replica reports")
		stop() // as when the process is told to end
		return nil
	})
	fmt.Println(err)
	// Output:
	// one replica reports
	// context canceled
}

// With github.com/robfig/cron: its schedule is also that of the Job.
func ExampleJob_Func() {
	ctx, stop := context.WithCancel(context.Background())
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ran := make(chan bool)

	schedule, err := cron.ParseStandard("@every 1s") // or "CRON_TZ=Europe/Berlin 30 3 * * *"
	if err != nil {
		log.Fatal(err)
	}
	job := schedlock.Job{
		Locks:    locks,
		Name:     "report",
		Schedule: schedule,
		Report: func(tick time.Time, err error) {
			if err != nil && !errors.Is(err, schedlock.ErrTaken) {
				log.Printf("tick %v: %v", tick, err)
			}
		},
	}
	c := cron.New()
	c.Schedule(schedule, cron.FuncJob(job.Func(ctx, func(ctx context.Context) error {
		select {
		case ran <- true:
		case <-ctx.Done():
		}
		return ctx.Err()
	})))
	c.Start()
	fmt.Println(<-ran)
	stop() // as when the process is told to end; else the next run would wait for ever
	<-c.Stop().Done()
	// Output: true
}
