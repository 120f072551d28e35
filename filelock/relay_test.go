package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/must"
)

// relay takes the key whenever it is told to, and says when it got it.
func relay(s *Store, _ string, args []string) error {
	ctx := context.Background()
	for {
		c := waiting(exclusive(args[0]))
		wakes := make(chan driver.Grant, 100)
		g, err := s.Acquire(ctx, c)
		if err != nil || g.OK {
			return errors.Join(err, errors.New("the key was free"))
		}
		stop, err := s.Watch(ctx, c.Claim, func(g driver.Grant) { wakes <- g })
		if err != nil {
			return err
		}
		if g, err = s.Acquire(ctx, c); err != nil || g.OK {
			return errors.Join(err, errors.New("the key was free"))
		}
		fmt.Println("waits")
		for g = range wakes {
			if g.OK {
				break
			}
		}
		fmt.Println(time.Now().UnixNano())
		stop()
		errs := s.Renew(ctx, asks.Renewals(c))
		if err := errors.Join(append(errs, s.Release(ctx, asks.Releases(c))...)...); err != nil {
			return err
		}
		fmt.Println("done")
		var line string
		if _, err := fmt.Fscanln(os.Stdin, &line); err != nil {
			return nil
		}
	}
}

// BenchmarkHandOff is the time from the call that releases a key to when a
// waiter in another process has it.
func BenchmarkHandOff(b *testing.B) {
	s := must.Get(New(b.TempDir(), nil))
	defer s.Close()
	ctx := context.Background()
	c := exclusive("key")
	take := func() {
		if g, err := s.Acquire(ctx, c); err != nil || !g.OK {
			b.Fatal(g, err)
		}
	}
	take()
	other := spawn(b, "relay", s.dir, c.Key)
	var took []time.Duration
	for b.Loop() {
		other.says()
		sent := time.Now()
		s.Release(ctx, asks.Releases(c))
		got, err := strconv.ParseInt(other.says(), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Unix(0, got).Sub(sent))
		other.says()
		take()
		fmt.Fprintln(other.in, "again")
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
