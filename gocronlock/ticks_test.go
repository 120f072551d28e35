package gocronlock_test

import (
	"bufio"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
	"github.com/holdfast-go/holdfast/internal/workers"
)

// Four replicas, whose clocks are up to 150 ms apart, schedule a job every 200 ms by
// gocron: no tick is run twice, and each tick to which any of them came is run.
//
// A machine may be too busy for all of them to come to a tick, as gocron then leaves
// it out, or for the store to answer: such ticks are counted, and do not decide.
func TestEachTickOnce(t *testing.T) {
	t.Parallel()
	ticks := 50
	if testing.Short() {
		ticks = 20
	}
	redis := servers.StartRedis(t)
	s := &said{T: t, ran: make(map[int64]int), failed: make(map[int64]string), asked: make(map[int64]bool)}
	var replicas []*workers.Worker
	for _, skew := range []string{"0s", "50ms", "100ms", "150ms"} {
		r := workers.Start(t, "redis://"+redis.Addr(), skew)
		replicas = append(replicas, r)
		s.all.Go(func() { s.listen(bufio.NewScanner(r.Out)) })
	}
	began := time.Now()
	servers.Until(t, "the ticks", func() bool {
		n := s.ticks()
		return n >= ticks || n > 0 && time.Since(began) > 30*time.Second
	})
	if n := s.ticks(); n < ticks {
		unproved.Logf(t, "only %d ticks of %d were run", n, ticks)
	}
	for _, r := range replicas {
		s.must(r.In.Close())
	}
	s.all.Wait()
	for _, r := range replicas {
		s.must(r.Wait())
	}
	s.check()
}

// said is what the replicas have said, by the number of the tick.
type said struct {
	*testing.T
	all sync.WaitGroup

	mu     sync.Mutex
	runs   int // of the job itself
	ran    map[int64]int
	failed map[int64]string
	asked  map[int64]bool
}

func (s *said) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// ticks returns how many were run.
func (s *said) ticks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ran)
}

func (s *said) listen(lines *bufio.Scanner) {
	for lines.Scan() {
		s.mu.Lock()
		s.note(lines.Text())
		s.mu.Unlock()
	}
}

func (s *said) note(line string) {
	const edge = int64(interval / 10)
	var from, to int64
	var outcome string
	switch {
	case line == "ready":
	case line == "ran":
		s.runs++
	case strings.HasPrefix(line, "asked "):
		if _, err := fmt.Sscanf(line, "asked %d %d", &from, &to); err != nil {
			s.Errorf("%q: %v", line, err)
		}
		// Between the two the locker has looked at the clock, too.
		if first := (from + edge) / int64(interval); first == (to+edge)/int64(interval) {
			s.asked[first] = true
		}
	default:
		if _, err := fmt.Sscanf(line, "%d %q", &from, &outcome); err != nil {
			s.Errorf("%q: %v", line, err)
		}
		if from%int64(interval) != 0 {
			s.Errorf("%d is no tick", from)
		}
		if outcome == "<nil>" {
			s.ran[from/int64(interval)]++
		} else {
			s.failed[from/int64(interval)] = outcome
		}
	}
}

func (s *said) check() {
	excused := 0
	for tick := range s.asked {
		switch {
		case s.ran[tick] > 0:
		case s.failed[tick] != "":
			excused++
			s.Logf("tick %d: %s", tick, s.failed[tick])
		default:
			s.Errorf("tick %d was asked for and not run", tick)
		}
	}
	for tick, n := range s.ran {
		if n > 1 {
			s.Errorf("tick %d was run %d times", tick, n)
		}
	}
	if s.runs < len(s.ran) || s.runs > len(s.ran)+len(s.failed) {
		s.Errorf("the job ran %d times, for %d ticks", s.runs, len(s.ran))
	}
	s.Logf("%d ticks were run, of %d that were asked for; %d failed", len(s.ran), len(s.asked), excused)
}
