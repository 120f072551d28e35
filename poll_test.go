package holdfast

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

// A store without push is polled with growing pauses, bounded by Poll and by
// the holder's remaining time.
func TestPollingWhereNothingPushes(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := must.Get(New(mute{b.store}, &Options{Poll: 200 * time.Millisecond}))
		defer lk.Close()
		other := b.open(nil)
		l := b.lock(other, "k")
		b.store.seen()
		got := make(chan *Lock)
		go func() { got <- b.lock(lk, "k") }()
		time.Sleep(10 * time.Second)
		if c := b.store.seen(); c.acquire < 50 || c.acquire > 80 {
			b.Errorf("asked %d times in 10s, want once in 100 to 200ms", c.acquire)
		}
		b.unlock(l)
		start := time.Now()
		b.unlock(<-got)
		if d := time.Since(start); d > 200*time.Millisecond {
			b.Errorf("slept %v past a release", d)
		}
	})
}

// Where a lock goes from hand to hand in a line of pollers, each asks sooner as its turn
// comes nearer: it asks a few times for a lock, however often it has waited before.
func TestPollersInLine(t *testing.T) {
	for _, test := range []struct {
		pollers int
		hold    time.Duration
		asks    float64       // for each lock at most
		unused  time.Duration // for each lock at most, with nobody at work
	}{
		{4, time.Millisecond, 6, 10 * time.Millisecond},
		{4, 10 * time.Millisecond, 9, 25 * time.Millisecond},
		{4, 100 * time.Millisecond, 14, 150 * time.Millisecond},
		{32, time.Millisecond, 10, 15 * time.Millisecond},
		{32, 10 * time.Millisecond, 24, 25 * time.Millisecond},
	} {
		simulate(t, func(b *bench) {
			const each = 20
			start := time.Now()
			var all sync.WaitGroup
			for range test.pollers {
				lk := must.Get(New(mute{b.store}, nil))
				defer lk.Close()
				all.Go(func() {
					for range each {
						l := b.lock(lk, "k")
						time.Sleep(test.hold)
						b.unlock(l)
					}
				})
			}
			all.Wait()
			locks := test.pollers * each
			asks := float64(b.store.seen().acquire) / float64(locks)
			unused := time.Since(start)/time.Duration(locks) - test.hold
			b.Logf("%d pollers, held for %v: asked %.1f times a lock, unused for %v", test.pollers, test.hold, asks, unused)
			if asks > test.asks || unused > test.unused {
				b.Errorf("want %v and %v at most", test.asks, test.unused)
			}
		})
	}
}

// Many who come at the same moment, each for one lock, come apart soon: where the
// store asks for a pause each of them asks a few times before it has its turn.
func TestPollersComeApart(t *testing.T) {
	const pollers, pause = 32, 50 * time.Millisecond
	for _, test := range []struct {
		hold time.Duration
		most float64
	}{
		{0, 2.4},
		{time.Millisecond, 3.2},
		{10 * time.Millisecond, 4.8},
	} {
		simulate(t, func(b *bench) {
			start := time.Now()
			var all sync.WaitGroup
			for range pollers {
				lk := must.Get(New(crowd{mute{b.store}, pause}, nil))
				defer lk.Close()
				all.Go(func() {
					l := b.lock(lk, "k")
					time.Sleep(test.hold)
					b.unlock(l)
				})
			}
			all.Wait()
			per := float64(b.store.seen().acquire) / pollers
			b.Logf("held for %v: asked %.1f times a lock, in %v", test.hold, per, since(start))
			if per > test.most {
				b.Errorf("held for %v: asked %.1f times a lock, want %v at most", test.hold, per, test.most)
			}
		})
	}
}

// The waiter that the store calls the next asks at the pace of the store, without longer and
// longer pauses, though not more seldom than every Poll.
func TestPollingOfTheNext(t *testing.T) {
	for _, test := range []struct {
		pause       time.Duration
		least, most int // requests in 10s
	}{
		{20 * time.Millisecond, 500, 1000},
		{time.Second, 20, 42},
	} {
		simulate(t, func(b *bench) {
			lk := must.Get(New(head{mute{b.store}, test.pause}, nil))
			defer lk.Close()
			l := b.lock(b.open(nil), "k")
			b.store.seen()
			got := make(chan *Lock)
			go func() { got <- b.lock(lk, "k") }()
			time.Sleep(10 * time.Second)
			if c := b.store.seen(); c.acquire < test.least || c.acquire > test.most {
				b.Errorf("with pauses of %v: asked %d times in 10s, want %d to %d", test.pause, c.acquire, test.least, test.most)
			}
			b.unlock(l)
			b.unlock(<-got)
		})
	}
}

// A head is a store to which every waiter is the next.
type head struct {
	mute
	pause time.Duration
}

func (s head) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	g, err := s.mute.Acquire(ctx, a)
	g.Pause, g.Next = s.pause, !g.OK
	return g, err
}

// A crowd is a store in which nobody stands in line.
type crowd struct {
	mute
	pause time.Duration
}

func (s crowd) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	a.Wait = false
	time.Sleep(100 * time.Microsecond) // there, and back again
	g, err := s.mute.Acquire(ctx, a)
	g.Pause = s.pause
	time.Sleep(100 * time.Microsecond)
	return g, err
}

// mute is a store with the bare contract only.
type mute struct{ s *faulty }

func (m mute) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	return m.s.Acquire(ctx, a)
}
func (m mute) Renew(ctx context.Context, rs []driver.Renewal) []error   { return m.s.Renew(ctx, rs) }
func (m mute) Release(ctx context.Context, rs []driver.Release) []error { return m.s.Release(ctx, rs) }
func (m mute) Close() error                                             { return nil }
