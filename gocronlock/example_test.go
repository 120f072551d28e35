package gocronlock_test

import (
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/schedlock"
)

// Every replica does this, and one of them runs each tick.
func Example() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ran := make(chan bool, 100)

	every := schedlock.Every(100 * time.Millisecond)
	locker := gocronlock.New(schedlock.Job{Locks: locks, Schedule: every})
	scheduler, err := gocron.NewScheduler()
	if err != nil {
		log.Fatal(err)
	}
	_, err = scheduler.NewJob(
		gocron.DurationJob(100*time.Millisecond),
		gocron.NewTask(func() { ran <- true }),
		gocron.WithName("report"),
		gocron.WithStartAt(gocron.WithStartDateTime(every.Next(time.Now().Add(time.Minute)))),
		gocron.WithDistributedJobLocker(locker),
	)
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	_ = scheduler.Jobs()[0].RunNow() // rather than wait for a minute
	fmt.Println(<-ran)
	_ = scheduler.Shutdown()
	// Output: true
}

// Every replica does this, and the one that leads runs all jobs.
func Example_elector() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ran := make(chan bool, 100)

	elector := schedlock.NewElector(locks, "scheduler")
	defer elector.Close()
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		log.Fatal(err)
	}
	if _, err = scheduler.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func() { ran <- true })); err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	fmt.Println(<-ran)
	_ = scheduler.Shutdown()
	// Output: true
}
