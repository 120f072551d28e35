package sqlstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/detached"
)

var errRefused = errors.New("refused")

// A counter is a server of numbers. Statements of several numbers wait for answer.
type counter struct {
	*testing.T
	together[int]
	calls  detached.Runner
	note   sync.Mutex
	single []int // sent alone
	shared [][]int
	free   chan struct{} // lets a statement of one number end
	answer chan error    // to a statement of several numbers
}

// counting runs a test with a counter that may run one statement at a time, and has the number 0
// under way.
func counting(t *testing.T, test func(c *counter)) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{T: t, free: make(chan struct{}), answer: make(chan error)}
		c.most, c.turn = func() int { return 1 }, atOnce
		c.alone = func(err error) bool { return errors.Is(err, errRefused) }
		c.some = func(ctx context.Context, numbers []int) error {
			c.shared = append(c.shared, slices.Sorted(slices.Values(numbers)))
			select {
			case err := <-c.answer:
				return err
			case <-detached.Sent(ctx).Done():
				return context.Canceled
			}
		}
		zero := c.send(t.Context(), 0)
		test(c)
		if err := <-zero; err != nil {
			t.Error(err)
		}
		if synctest.Wait(); c.running != 0 || len(c.waiting) > 0 {
			t.Errorf("%d statements under way and %d numbers that wait, want none", c.running, len(c.waiting))
		}
	})
}

func (c *counter) send(ctx context.Context, n int) (end chan error) {
	end = make(chan error, 1)
	go func() {
		end <- c.do(ctx, n, func() error {
			c.note.Lock()
			c.single = append(c.single, n)
			c.note.Unlock()
			if n == 0 {
				<-c.free
			}
			return nil
		})
	}()
	synctest.Wait()
	return end
}

func (c *counter) want(single []int, shared ...[]int) {
	c.Helper()
	synctest.Wait()
	if !slices.Equal(c.single, single) || !slices.EqualFunc(c.shared, shared, slices.Equal) {
		c.Errorf("sent %v alone and %v together, want %v and %v", c.single, c.shared, single, shared)
	}
}

// Requests that come while a statement is under way share the next one, a hundred at most.
func TestTogether(t *testing.T) {
	counting(t, func(c *counter) {
		var all, first []int
		var ends []chan error
		for n := 1; n <= mostTogether+2; n++ {
			all, ends = append(all, n), append(ends, c.send(c.Context(), n))
		}
		first = all[:mostTogether]
		c.want([]int{0})
		close(c.free)
		c.want([]int{0}, first)
		c.answer <- nil
		c.want([]int{0}, first, all[mostTogether:])
		broken := errors.New("connection reset")
		c.answer <- broken
		for i, end := range ends {
			if err := <-end; (err == nil) != (i < mostTogether) || err != nil && err != broken {
				c.Errorf("%d: %v", i+1, err)
			}
		}
	})
}

// If a statement fails because of one request, each of its requests is sent alone.
func TestTogetherRefused(t *testing.T) {
	counting(t, func(c *counter) {
		one, two := c.send(c.Context(), 1), c.send(c.Context(), 2)
		close(c.free)
		c.answer <- errRefused
		if err := errors.Join(<-one, <-two); err != nil {
			c.Error(err)
		}
		slices.Sort(c.single)
		c.want([]int{0, 1, 2}, []int{1, 2})
	})
}

// A statement for one request that takes long keeps others from theirs for a while only.
func TestTogetherWithSlow(t *testing.T) {
	counting(t, func(c *counter) {
		began := time.Now()
		one := c.send(c.Context(), 1)
		c.answer <- nil
		if err := <-one; err != nil || time.Since(began) != patience {
			c.Errorf("%v after %v, want an answer after %v", err, time.Since(began), patience)
		}
		c.want([]int{0}, []int{1})
		if err := <-c.send(c.Context(), 2); err != nil {
			c.Error(err)
		}
		c.want([]int{0, 2}, []int{1})
		close(c.free)
	})
}

// A request behind a statement that has taken long already is sent at once.
func TestTogetherAfterSlow(t *testing.T) {
	counting(t, func(c *counter) {
		time.Sleep(patience)
		began := time.Now()
		one := c.send(c.Context(), 1)
		c.answer <- nil
		if err := <-one; err != nil || time.Since(began) != 0 {
			c.Errorf("%v after %v, want an answer at once", err, time.Since(began))
		}
		c.want([]int{0}, []int{1})
		close(c.free)
	})
}

// A caller that leaves before its request is sent takes the request along. Later the caller leaves at
// once, and a detached call stays for the answer. A statement without callers ends after a while.
func TestLeaveTogether(t *testing.T) {
	counting(t, func(c *counter) {
		unsent, leaveUnsent := context.WithCancel(c.Context())
		sent, leaveSent := context.WithTimeout(c.Context(), detached.Grace/4)
		defer leaveSent()
		one, two := c.send(unsent, 1), c.send(sent, 2)
		stays := make(chan error, 1)
		go func() {
			_, err := detached.Run(sent, &c.calls, "id", func(ctx context.Context) (any, error) {
				stays <- c.do(ctx, 3, nil)
				return nil, nil
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				c.Error(err)
			}
		}()
		synctest.Wait()
		leaveUnsent()
		if err := <-one; !errors.Is(err, context.Canceled) {
			c.Error(err)
		}
		close(c.free)
		c.want([]int{0}, []int{2, 3})
		if err := <-two; !errors.Is(err, context.DeadlineExceeded) {
			c.Error(err)
		}
		synctest.Wait()
		select {
		case err := <-stays:
			c.Errorf("a detached call has left its request: %v", err)
		default:
		}
		began := time.Now()
		if err := <-stays; !errors.Is(err, context.DeadlineExceeded) {
			c.Error(err)
		}
		if rest := detached.Grace - detached.Grace/4; time.Since(began) != rest {
			c.Errorf("a statement without callers went on for %v, want %v", time.Since(began), rest)
		}
	})
}
