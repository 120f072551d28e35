package holdfast

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTraceTellsTheLifeOfALock(t *testing.T) {
	simulate(t, func(b *bench) {
		events := make(chan string, 20)
		tell := func(name string) func(Event) {
			return func(e Event) { events <- fmt.Sprintf("%s %s %v", name, e.Key, e.Err != nil) }
		}
		lk := b.open(&Options{Prefix: "p/", Trace: &Trace{
			Tried: tell("tried"), Locked: tell("locked"), Renewed: tell("renewed"),
			AtRisk: tell("at risk"), Lost: tell("lost"), Unlocked: tell("unlocked"),
		}})
		l := b.lock(lk, "k")
		if _, err := b.open(nil).TryLock(b.Context(), "p/k"); !errors.Is(err, ErrHeld) {
			b.Error(err)
		}
		time.Sleep(6 * time.Second)
		b.unlock(l)
		l = b.lock(b.open(nil), "p/k")
		if _, err := lk.TryLock(b.Context(), "k"); !errors.Is(err, ErrHeld) {
			b.Error(err)
		}
		b.unlock(l)
		synctest.Wait()
		close(events)
		var got []string
		for e := range events {
			got = append(got, e)
		}
		want := []string{"locked k false", "renewed k false", "unlocked k false", "tried k true"}
		if !slices.Equal(got, want) {
			b.Errorf("events %q, want %q", got, want)
		}
	})
}
