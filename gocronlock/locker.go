// Package gocronlock is a Locker for github.com/go-co-op/gocron/v2: each tick of a gocron
// job runs on a single replica. Package schedlock describes the method and the guarantees.
//
//	every := schedlock.Every(time.Minute)
//	locker := gocronlock.New(schedlock.Job{Locks: locks, Schedule: every})
//	start := gocron.WithStartDateTime(every.Next(time.Now()))
//	scheduler.NewJob(gocron.DurationJob(time.Minute), task, gocron.WithName("report"),
//		gocron.WithStartAt(start), gocron.WithDistributedJobLocker(locker))
//
// gocron counts an interval from when the job was added, so set the first run to a tick of
// the [schedlock.Schedule], as above. Otherwise runs near the edge of two ticks may count
// as the same tick, and a run is dropped. For a CronJob, make the Schedule by
// cron.ParseStandard from the same text.
//
// gocron does not notify its job when the lock is lost. If the job must know, leave out the
// Locker and let the job itself call [schedlock.Job.Run].
package gocronlock

import (
	"context"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/schedlock"
)

// A Locker locks the jobs of a gocron scheduler that have the same schedule.
type Locker struct {
	job schedlock.Job
}

var _ gocron.Locker = (*Locker)(nil)

// New returns a Locker. The name of the gocron job is appended to the Name of job, which
// may be empty. Give each job a unique name by gocron.WithName. The default name is the
// name of the job's function, and two jobs with the same name take each other's ticks. If
// the scheduler has its own clock, set the Clock of job to the same clock.
func New(job schedlock.Job) *Locker { return &Locker{job} }

// Lock takes the due tick of the job with the given gocron name. The errors are the errors
// of [schedlock.Job.Take].
func (l *Locker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	job := l.job
	job.Name += name
	turn, err := job.Take(ctx)
	if err != nil {
		return nil, err
	}
	return run{turn}, nil
}

// A run is a Turn as a gocron.Lock.
type run struct{ turn *schedlock.Turn }

// Unlock ends the run. The context is ignored: a cancelled job releases its lock, too.
func (r run) Unlock(context.Context) error { return r.turn.Unlock() }
