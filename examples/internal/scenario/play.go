package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/child"
)

// A Play is a workload. Goroutines of several processes start at the same moment, and
// send requests one after the other.
type Play struct {
	Compare                         bool
	Processes, Goroutines, Requests int
	Work                            time.Duration

	worker bool
}

// Flags defines the flags of a play.
func Flags() *Play {
	p := &Play{}
	flag.BoolVar(&p.Compare, "compare", false, "let several processes play each guard, and print a table")
	flag.IntVar(&p.Processes, "processes", 4, "with -compare: how many processes")
	flag.IntVar(&p.Goroutines, "goroutines", 8, "with -compare: how many goroutines in each process")
	flag.IntVar(&p.Requests, "requests", 50, "with -compare: how many requests of each goroutine")
	flag.DurationVar(&p.Work, "work", time.Millisecond, "with -compare: how long a request works between its read and its write")
	flag.BoolVar(&p.worker, "worker", false, "be one of the processes (-compare sets it)")
	return p
}

// Check refuses numbers below 1 and a negative duration.
func (p *Play) Check() error {
	if p.Processes < 1 || p.Goroutines < 1 || p.Requests < 1 || p.Work < 0 {
		return errors.New("-processes, -goroutines and -requests must be 1 or more, and -work 0 or more")
	}
	return nil
}

// Worker reports whether Run has started this process.
func (p *Play) Worker() bool { return p.worker }

// All returns the number of requests of all goroutines.
func (p *Play) All() int { return p.Processes * p.Goroutines * p.Requests }

// Pause waits for the duration of -work.
func (p *Play) Pause(ctx context.Context) error {
	select {
	case <-time.After(p.Work):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A Result counts requests by their outcome.
type Result struct {
	Done, Refused, Retries int
	Times                  []time.Duration // of each request

	Elapsed time.Duration
}

// Send plays the part of one process: print "ready", wait for a line, send the requests,
// print the result. The function request gets the numbers of the goroutine and of the
// request. The function refused tells the error of a refused request from one that ends
// the play. A request that ends in a deadlock is sent again, and counts as a retry.
func (p *Play) Send(ctx context.Context, request func(ctx context.Context, goroutine, n int) error, refused func(error) bool, retries *atomic.Int64) error {
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var (
		mu  sync.Mutex
		all Result
		wg  sync.WaitGroup
	)
	for g := range p.Goroutines {
		wg.Go(func() {
			for n := range p.Requests {
				began := time.Now()
				err := request(ctx, g, n)
				for isDeadlock(err) {
					retries.Add(1)
					err = request(ctx, g, n)
				}
				took := time.Since(began)
				mu.Lock()
				all.Times = append(all.Times, took)
				switch {
				case err == nil:
					all.Done++
				case refused(err):
					all.Refused++
				default:
					fail(err)
				}
				mu.Unlock()
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	all.Retries = int(retries.Load())
	return errors.Join(context.Cause(ctx), json.NewEncoder(os.Stdout).Encode(all))
}

// Run starts this program once per process, with the same arguments, and adds the
// results up.
func (p *Play) Run(ctx context.Context, guard string) (sum Result, err error) {
	program, err := os.Executable()
	if err != nil {
		return sum, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command := slices.Concat([]string{program}, os.Args[1:], []string{"-worker", "-guard", guard})
	processes := make([]*child.Process, p.Processes)
	for i := range processes {
		if processes[i], err = child.Start(ctx, command, os.Stderr); err != nil {
			return sum, err
		}
		defer processes[i].Wait()
		defer cancel()
	}
	for _, of := range processes {
		if line, err := of.Out.ReadString('\n'); err != nil {
			return sum, fmt.Errorf("a process has ended before it was ready: %s%w", line, err)
		}
	}
	began := time.Now()
	for _, of := range processes {
		if _, err := io.WriteString(of.In, "go\n"); err != nil {
			return sum, err
		}
	}
	for _, of := range processes {
		var r Result
		if err := json.NewDecoder(of.Out).Decode(&r); err != nil {
			return sum, fmt.Errorf("the result of a process: %w", err)
		}
		sum.Done += r.Done
		sum.Refused += r.Refused
		sum.Retries += r.Retries
		sum.Times = append(sum.Times, r.Times...)
		sum.Elapsed = time.Since(began)
	}
	for _, of := range processes {
		if err := of.Wait(); err != nil { // The process says why on stderr.
			return sum, fmt.Errorf("a process has failed: %w", err)
		}
	}
	slices.Sort(sum.Times)
	if len(sum.Times) != p.All() {
		return sum, fmt.Errorf("%d of %d requests were answered", len(sum.Times), p.All())
	}
	return sum, nil
}
