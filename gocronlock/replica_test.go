package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
	_ "github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/schedlock"
)

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error { return replicate(args[0], args[1]) })
	os.Exit(m.Run())
}

const interval = 200 * time.Millisecond

// A skewed clock is wrong by that much.
type skewed struct {
	clockwork.Clock
	by time.Duration
}

func (s skewed) Now() time.Time                  { return s.Clock.Now().Add(s.by) }
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
func (s skewed) Until(t time.Time) time.Duration { return t.Sub(s.Now()) }

// replicate schedules the job until its input ends, and says what happens:
//
//	asked FROM TO    gocron has called for the lock, by the clock of this replica
//	ran              the job, once
//	TICK "OUTCOME"   what became of a tick
func replicate(url, skew string) error {
	by, err := time.ParseDuration(skew)
	if err != nil {
		return err
	}
	locks, err := servers.Answer(context.Background(), func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) })
	if err != nil {
		return err
	}
	clock := skewed{clockwork.NewRealClock(), by}
	every := schedlock.Every(interval)
	locker := gocronlock.New(schedlock.Job{
		Locks:     locks,
		Schedule:  every,
		Overlap:   schedlock.Delay,
		Tolerance: 5 * time.Second,
		Clock:     clock.Now,
		Report: func(tick time.Time, err error) {
			if !errors.Is(err, schedlock.ErrMissed) && !errors.Is(err, schedlock.ErrTaken) {
				fmt.Printf("%d %q\n", tick.UnixNano(), fmt.Sprint(err))
			}
		},
	})
	scheduler, err := gocron.NewScheduler(gocron.WithClock(clock), gocron.WithStopTimeout(time.Minute))
	if err != nil {
		return err
	}
	_, err = scheduler.NewJob(gocron.DurationJob(interval), gocron.NewTask(func() { fmt.Println("ran") }),
		gocron.WithName("job"),
		gocron.WithStartAt(gocron.WithStartDateTime(every.Next(clock.Now().Add(2*time.Second)))),
		gocron.WithDistributedJobLocker(noting{locker, clock}))
	if err != nil {
		return err
	}
	scheduler.Start()
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return errors.Join(scheduler.Shutdown(), locks.Close())
}

// noting says when gocron calls for the lock.
type noting struct {
	gocron.Locker
	clock clockwork.Clock
}

func (n noting) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	from := n.clock.Now()
	lock, err := n.Locker.Lock(ctx, name)
	fmt.Printf("asked %d %d\n", from.UnixNano(), n.clock.Now().UnixNano())
	return lock, err
}
