package memcachelock

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	maxJobs = 100 // jobs that take a step in one piece
	patient = 3   // steps that a job may need without contention

	// maxBytes is the size of a full piece. The operating system accepts a piece at once, and
	// the client begins to read before the server has to wait with its answers.
	maxBytes = 1 << 15
)

// run runs jobs to their end.
func (s *server) run(ctx context.Context, jobs []*job) {
	err := s.with(ctx, func(c *conn) error {
		for _, j := range jobs {
			j.begin(c)
		}
		for round := 0; ; round++ {
			left := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.step == done })
			if len(left) == 0 {
				return nil
			}
			if err := backOff(ctx, round-patient); err != nil {
				return err
			}
			for len(left) > 0 {
				n, err := c.advance(left)
				if err != nil {
					return err
				}
				left = left[n:]
			}
		}
	})
	for _, j := range jobs {
		if j.step != done {
			j.fail(err)
		}
	}
}

// backOff waits for a short random time after repeated contention.
func backOff(ctx context.Context, often int) error {
	if often <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(rand.N(time.Millisecond << min(often, 5)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// advance takes the next step of the jobs that fit into one piece, and returns their number.
func (c *conn) advance(jobs []*job) (n int, err error) {
	var out []byte
	var counts []int
	total := 0
	for n < len(jobs) && n < maxJobs && len(out) < maxBytes {
		var count int
		out, count = jobs[n].commands(out)
		counts = append(counts, count)
		total += count
		n++
	}
	replies, err := c.exchange(out, total)
	if err != nil {
		for _, j := range jobs[:n] {
			if j.step != look {
				j.unsure = c.run
			}
		}
		return 0, err
	}
	for i, j := range jobs[:n] {
		j.replies(c, replies[:counts[i]])
		replies = replies[counts[i]:]
	}
	if c.failed {
		return 0, c.wrongClock(jobs[0].clock)
	}
	return n, nil
}
