// Package gocronlock is a Locker for github.com/go-co-op/gocron/v2: each tick of a
// gocron job runs on one of several replicas. Package schedlock says how, and what is
// promised.
//
//	every := schedlock.Every(time.Minute)
//	locker := gocronlock.New(schedlock.Job{Locks: locks, Schedule: every})
//	start := gocron.WithStartDateTime(every.Next(time.Now()))
//	scheduler.NewJob(gocron.DurationJob(time.Minute), task, gocron.WithName("report"),
//		gocron.WithStartAt(start), gocron.WithDistributedJobLocker(locker))
//
// gocron counts an interval from when the job was added, so give it a first tick that
// is one of the [schedlock.Schedule], as above. Otherwise runs near the edge of two
// ticks may be taken for the same, and one of them does not happen. For a CronJob, the
// Schedule is what cron.ParseStandard makes of the same text.
//
// gocron does not tell its job when the lock is lost. Where that matters, leave out
// the Locker and let the job itself call [schedlock.Job.Run].
package gocronlock

import (
	"context"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/ext/schedlock"
)

// A Locker locks the jobs of a gocron scheduler that have the same schedule.
type Locker struct {
	job schedlock.Job
}

var _ gocron.Locker = (*Locker)(nil)

// New returns a Locker. The name that gocron knows the job by is added to the one of
// the description, which may be empty. Give each job its own by gocron.WithName: unless
// set, that is the name of its function, and two jobs with one name take each other's
// ticks. If the scheduler has a clock of its own, so
// must the description.
func New(job schedlock.Job) *Locker { return &Locker{job} }

// Lock takes the tick that is due of the job that gocron calls name. The errors are
// those of [schedlock.Job.Take].
func (l *Locker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	job := l.job
	job.Name += name
	turn, err := job.Take(ctx)
	if err != nil {
		return nil, err
	}
	return run{turn}, nil
}

// A run is a Turn as gocron knows it.
type run struct{ turn *schedlock.Turn }

// Unlock ends the run. It needs no context: a cancelled job gives its lock back, too.
func (r run) Unlock(context.Context) error { return r.turn.Unlock() }
