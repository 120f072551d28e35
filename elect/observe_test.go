package elect

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

func TestObserve(t *testing.T) {
	simulate(t, func(b *bench) {
		type event struct {
			note string
			err  error
		}
		events := make(chan event, 100)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for leader, err := range Observe(b.ctx, b.locks, job, 0) {
				events <- event{leader.Note, err}
			}
		}()
		expect := func(want string, wantErr error) {
			b.Helper()
			synctest.Wait()
			select {
			case e := <-events:
				if e.note != want || !errors.Is(e.err, wantErr) {
					b.Errorf("observed %q, %v; want %q, %v", e.note, e.err, want, wantErr)
				}
			default:
				b.Errorf("observed nothing, want %q, %v", want, wantErr)
			}
			if len(events) > 0 {
				b.Errorf("observed more: %v", <-events)
			}
		}
		expect("", nil)
		b.run(lead, Note("one"), MaxTerm(time.Hour))
		after(time.Minute)
		expect("one", nil)
		b.run(lead, Note("two"))
		after(time.Hour)
		expect("two", nil)
		b.store.cut.Store(true)
		after(5 * time.Second)
		expect("", errCut)
		b.store.cut.Store(false)
		after(time.Second)
		expect("two", nil)
		b.stop()
		<-done
	})
}

func TestObserveEnds(t *testing.T) {
	simulate(t, func(b *bench) {
		dumb := holdfast.New(struct{ driver.Store }{memlock.New()}, nil)
		defer dumb.Close()
		closed := holdfast.New(memlock.New(), nil)
		closed.Close()
		for _, test := range []struct {
			locks *holdfast.Locker
			job   string
			every time.Duration
			want  string
		}{
			{dumb, job, 0, errors.ErrUnsupported.Error()},
			{closed, job, 0, holdfast.ErrClosed.Error()},
			{b.locks, "", 0, "key"},
			{b.locks, job, 1, "every is 1ns"},
		} {
			n := 0
			for _, err := range Observe(b.ctx, test.locks, test.job, test.every) {
				if n++; err == nil || !strings.Contains(err.Error(), test.want) {
					b.Errorf("observed %v, want %q", err, test.want)
				}
			}
			if n != 1 {
				b.Errorf("%q: %d events", test.want, n)
			}
		}
	})
}
