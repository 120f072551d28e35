package detached_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/detached"
)

// Detached calls leave one connection to other requests, of however many there are now.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns := 0
		r := detached.Runner{Conns: func() int { return conns }}
		s := &server{make(chan struct{}, 1000), make(chan int)}
		came, gone := 0, 0
		come := func(n int) {
			for range n {
				came++
				go ask(t.Context(), &r, string(rune(came)), s)
			}
			synctest.Wait()
		}
		over := func(n int) {
			for range n {
				gone++
				<-s.sent
				s.answers <- 0
			}
			synctest.Wait()
		}
		for _, step := range []struct{ conns, come, over, run int }{
			{conns: 4, come: 2, run: 2},
			{conns: 4, come: 5, run: 3},
			{conns: 4, over: 1, run: 3},
			{conns: 2, over: 1, run: 2},
			{conns: 2, over: 1, run: 1},
			{conns: 2, over: 1, run: 1},
			{conns: 6, come: 1, run: 4},
			{conns: 1, over: 3, run: 1},
			{conns: 1, come: 2, over: 1, run: 1},
			{conns: 0, come: 200, run: 100},
			{conns: 500, over: 1, run: 100},
			{conns: 50, over: 52, run: 49},
		} {
			conns = step.conns
			come(step.come)
			over(step.over)
			if len(s.sent) != step.run {
				t.Errorf("after %+v: %d run", step, len(s.sent))
			}
		}
		over(came - gone)
		r.Close()
	})
}

// Slots are granted in FIFO order, except for clean-up.
func TestLanesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := detached.Runner{Conns: func() int { return 2 }}
		leave, err := r.Slot(t.Context())
		want(t, "the error", err, nil)
		const cleaner = -1
		var order []int
		for i := range 5 {
			go detached.Do(t.Context(), &r, string(rune('a'+i)), func(context.Context) (int, error) {
				order = append(order, i)
				return 0, nil
			})
			synctest.Wait()
		}
		go func() {
			leave, _ := r.Slot(t.Context())
			order = append(order, cleaner)
			leave()
		}()
		synctest.Wait()
		want(t, "who is served", len(order), 0)
		leave()
		synctest.Wait()
		if !slices.Equal(order, []int{cleaner, 0, 1, 2, 3, 4}) {
			t.Errorf("they are served in the order %d", order)
		}
	})
}

// A caller that gives up the wait for a slot leaves nothing behind: no place in the queue,
// nothing that another caller would have to wait for, and no goroutine, for which the bubble
// looks at its end.
func TestLeaveTheQueue(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := detached.Runner{Conns: func() int { return 2 }}
			leave, err := r.Slot(t.Context())
			want(t, "the error", err, nil)
			never := func(context.Context) (int, error) { panic("it is sent") }
			for range 10 {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				_, err := detached.Do(ctx, &r, "id", never)
				want(t, "the error", err, context.DeadlineExceeded)
				_, err = r.Slot(ctx)
				want(t, "the error of Slot", err, context.DeadlineExceeded)
				want(t, "it has waited for", time.Since(began), time.Millisecond)
				cancel()
			}
			if !ends {
				return
			}
			leave()
			n, err := detached.Do(t.Context(), &r, "id", func(context.Context) (int, error) { return 7, nil })
			want(t, "the next answer", n, 7)
			want(t, "its error", err, nil)
		})
	}
}

// If a waiter leaves just when it gets its slot, the next waiter gets the slot.
func TestLeaveTheQueueInTurn(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			r := detached.Runner{Conns: func() int { return 2 }}
			leave, err := r.Slot(t.Context())
			want(t, "the error", err, nil)
			ctx, cancel := context.WithCancel(t.Context())
			for _, ctx := range []context.Context{ctx, t.Context()} {
				go func() {
					if leave, err := r.Slot(ctx); err == nil {
						leave()
					}
				}()
				synctest.Wait()
			}
			cancel()
			leave()
		})
	}
}

// Close fails the callers that wait for a slot.
func TestCloseTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := detached.Runner{Conns: func() int { return 2 }}
		_, err := r.Slot(t.Context())
		want(t, "the error", err, nil)
		away := make(chan error)
		go func() {
			_, err := detached.Do(t.Context(), &r, "id", func(context.Context) (int, error) { panic("it is sent") })
			away <- err
		}()
		synctest.Wait()
		go r.Close()
		want(t, "who is sent away", <-away, detached.ErrClosed)
	})
}
