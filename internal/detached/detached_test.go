package detached_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/detached"
)

// A server answers on command.
type server struct {
	sent    chan struct{}
	answers chan int
}

func newServer() *server { return &server{make(chan struct{}, 10), make(chan int)} }

// ask sends a request and waits for its answer.
func (s *server) ask(ctx context.Context) (int, error) {
	ctx = detached.Sent(ctx)
	s.sent <- struct{}{}
	select {
	case n := <-s.answers:
		return n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func ask(ctx context.Context, r *detached.Runner, id string, s *server) (int, error) {
	return detached.Do(ctx, r, id, s.ask)
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	err, _ := got.(error)
	if is, ok := want.(error); got != want && !(ok && errors.Is(err, is)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestAnswer(t *testing.T) {
	var r detached.Runner
	wrong := errors.New("wrong")
	n, err := detached.Do(t.Context(), &r, "id", func(context.Context) (int, error) { return 7, wrong })
	want(t, "the answer", n, 7)
	want(t, "its error", err, wrong)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = detached.Do(over, &r, "id", func(context.Context) (int, error) { panic("asked") })
	want(t, "of a caller who had left before", err, context.Canceled)
}

// A caller that gives up returns at once. The request has Grace from when it was sent, or as
// long as its caller would have stayed.
func TestLeave(t *testing.T) {
	for _, test := range []struct {
		name              string
		limit, left, ends time.Duration
	}{
		{"soon", 10 * time.Millisecond, 10 * time.Millisecond, detached.Grace},
		{"cancelled", time.Minute, 10 * time.Millisecond, detached.Grace},
		{"cancelled without a limit", 0, 10 * time.Millisecond, detached.Grace},
		{"late", 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{"cancelled late", time.Minute, 5 * time.Second, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r detached.Runner
				s, began := newServer(), time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				if test.limit > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), test.limit)
				}
				defer cancel()
				var ended time.Duration
				go func() {
					time.Sleep(test.left)
					cancel()
				}()
				_, err := detached.Do(ctx, &r, "id", func(ctx context.Context) (int, error) {
					n, err := s.ask(ctx)
					ended = time.Since(began)
					return n, err
				})
				want(t, "the error", err, ctx.Err())
				want(t, "the caller has left after", time.Since(began), test.left)
				r.Close()
				want(t, "the request has ended after", ended, test.ends)
			})
		})
	}
}

// A request whose caller has left gets its answer.
func TestAnswerOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r detached.Runner
		s := newServer()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var answered int
		_, err := detached.Do(ctx, &r, "id", func(ctx context.Context) (n int, err error) {
			answered, err = s.ask(ctx)
			return answered, err
		})
		want(t, "the error", err, context.DeadlineExceeded)
		s.answers <- 7
		r.Close()
		want(t, "the answer", answered, 7)
	})
}

// After the caller has left, no request is sent.
func TestSendNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r detached.Runner
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		var waited time.Duration
		var sent error
		_, err := detached.Do(ctx, &r, "id", func(ctx context.Context) (int, error) {
			detached.Sent(ctx) // and answered
			<-ctx.Done()       // as for a connection
			waited = time.Since(began)
			sent = detached.Sent(ctx).Err()
			return 0, sent
		})
		want(t, "the error", err, context.DeadlineExceeded)
		r.Close()
		want(t, "what it would send next", sent, context.DeadlineExceeded)
		want(t, "it has waited for", waited, time.Millisecond)
	})
}

// A caller that has left is told that nothing was written, as long as no request was sent
// that may have changed something. Then nothing is written.
func TestWrite(t *testing.T) {
	wrong := errors.New("wrong")
	for _, test := range []struct {
		name      string
		do        func(ctx context.Context, write func(error) error) error
		unwritten bool
		writes    int
	}{
		{"before anything", func(ctx context.Context, write func(error) error) error {
			<-ctx.Done()
			return write(nil)
		}, true, 0},
		{"after a write", func(ctx context.Context, write func(error) error) error {
			_ = write(nil)
			<-ctx.Done()
			return write(nil)
		}, false, 1},
		{"after one that failed", func(ctx context.Context, write func(error) error) error {
			_ = write(wrong)
			<-ctx.Done()
			return write(nil)
		}, false, 1},
		{"after one that changed nothing", func(ctx context.Context, write func(error) error) error {
			_ = write(nil)
			detached.Unwritten(ctx)
			<-ctx.Done()
			return write(nil)
		}, true, 1},
		{"after that and another", func(ctx context.Context, write func(error) error) error {
			_ = write(nil)
			detached.Unwritten(ctx)
			_ = write(nil)
			<-ctx.Done()
			return write(nil)
		}, false, 2},
		{"never, as it failed before", func(context.Context, func(error) error) error { return wrong }, true, 0},
		{"never, as it failed after a write", func(ctx context.Context, write func(error) error) error {
			_ = write(nil)
			return wrong
		}, false, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r detached.Runner
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				writes := 0
				_, err := detached.Do(ctx, &r, "id", func(ctx context.Context) (int, error) {
					return 0, test.do(ctx, func(err error) error {
						if ended := detached.Write(ctx); ended != nil {
							return ended
						}
						writes++
						return err
					})
				})
				r.Close()
				want(t, "that nothing was written", errors.Is(err, driver.ErrUnwritten), test.unwritten)
				want(t, "writes", writes, test.writes)
			})
		})
	}
}

// A caller that waits for a slot, or for the previous call, has written nothing.
func TestUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := detached.Runner{Conns: func() int { return 1 }}
		s := newServer()
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := detached.Do(soon, &r, "id", func(ctx context.Context) (int, error) {
			if err := detached.Write(ctx); err != nil {
				return 0, err
			}
			return s.ask(ctx)
		})
		want(t, "that who writes has written nothing", errors.Is(err, driver.ErrUnwritten), false)
		for _, id := range []string{"id", "other"} {
			soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, err := ask(soon, &r, id, s)
			want(t, "who waits behind it", err, driver.ErrUnwritten)
			want(t, "why", err, context.DeadlineExceeded)
		}
		want(t, "requests", len(s.sent), 1)
		r.Close()
		_, err = ask(t.Context(), &r, "id", s)
		want(t, "who comes later", err, driver.ErrUnwritten)
	})
	want(t, "outside of detached calls", detached.Write(t.Context()), nil)
	detached.Unwritten(t.Context())
}

// Two calls of an id are never under way together, and each has its own answer. Calls of other
// ids do not wait.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r detached.Runner
		s := newServer()
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := ask(soon, &r, "id", s)
		want(t, "who has left", err, context.DeadlineExceeded)

		tooSoon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = ask(tooSoon, &r, "id", s)
		want(t, "who leaves before it can ask", err, context.DeadlineExceeded)

		next := make(chan int)
		go func() {
			n, err := ask(t.Context(), &r, "id", s)
			want(t, "the next error", err, nil)
			next <- n
		}()
		synctest.Wait()
		want(t, "requests", len(s.sent), 1)
		_, err = detached.Do(t.Context(), &r, "other", func(context.Context) (int, error) { return 0, nil })
		want(t, "another id", err, nil)

		s.answers <- 1
		synctest.Wait()
		want(t, "requests after the first answer", len(s.sent), 2)
		s.answers <- 2
		want(t, "the next answer", <-next, 2)
		r.Close()
	})
}

// Close sends callers away and waits until nothing is under way.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r detached.Runner
		s := newServer()
		away := make(chan error)
		for _, id := range []string{"a", "b", "b"} {
			go func() {
				_, err := ask(t.Context(), &r, id, s)
				away <- err
			}()
		}
		synctest.Wait()
		began, closed := time.Now(), make(chan time.Duration, 2)
		for range 2 {
			go func() {
				r.Close()
				closed <- time.Since(began)
			}()
		}
		for range 3 {
			want(t, "who is sent away", <-away, detached.ErrClosed)
		}
		want(t, "they have waited for", time.Since(began), time.Duration(0))
		synctest.Wait()
		want(t, "closed before the answers", len(closed), 0)
		s.answers <- 1
		want(t, "Close after", <-closed, detached.Grace) // the other has none
		<-closed
		_, err := ask(t.Context(), &r, "c", s)
		want(t, "who comes later", err, detached.ErrClosed)
	})
}

// The context of no detached call is left alone.
func TestSentByOthers(t *testing.T) {
	want(t, "the context", detached.Sent(t.Context()), t.Context())
	want(t, "that it is of a detached call", detached.Runs(t.Context()), false)
}

func BenchmarkDo(b *testing.B) {
	var r detached.Runner
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		detached.Do(ctx, &r, "id", func(ctx context.Context) (int, error) {
			return 0, detached.Sent(ctx).Err()
		})
		cancel()
	}
}

// A joint call goes on while one of its callers stays. A sent request has [detached.Grace] then, and
// ends with the call.
func TestJoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, leaveOne := context.WithCancel(t.Context())
		other, leaveOther := context.WithCancel(t.Context())
		defer leaveOther()
		ctx, over := detached.Joint([]context.Context{one, other})
		sent := detached.Sent(ctx)
		leaveOne()
		synctest.Wait()
		want(t, "while one caller stays", ctx.Err(), nil)
		leaveOther()
		want(t, "without callers", ctx.Err(), context.Canceled)
		want(t, "the next request", detached.Sent(ctx).Err(), context.Canceled)
		want(t, "the sent request", sent.Err(), nil)
		time.Sleep(detached.Grace)
		synctest.Wait()
		want(t, "the sent request after a while", sent.Err(), context.Canceled)
		over()

		ctx, over = detached.Joint([]context.Context{t.Context()})
		sent = detached.Sent(ctx)
		over()
		want(t, "a call that is over", ctx.Err(), context.Canceled)
		want(t, "its sent request", sent.Err(), context.Canceled)
	})
}
