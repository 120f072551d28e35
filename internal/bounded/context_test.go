package bounded

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestEndsAtLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(Context).Start(t.Context(), time.Now().Add(time.Second))
		defer c.End()
		if err := c.Err(); err != nil {
			t.Fatalf("fresh context has ended: %v", err)
		}
		time.Sleep(time.Second)
		if err := c.Err(); err != context.DeadlineExceeded {
			t.Errorf("never waited for: Err = %v, want deadline exceeded", err)
		}
		<-c.Done()
		if err := c.Err(); err != context.DeadlineExceeded {
			t.Errorf("waited for: Err = %v, want deadline exceeded", err)
		}
	})
}

func TestEndsWithParentAndKeepsItsError(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	c := new(Context).Start(parent, time.Now().Add(time.Hour))
	defer c.End()
	done := c.Done()
	cancel()
	<-done
	if err := c.Err(); err != context.Canceled {
		t.Errorf("Err = %v, want canceled", err)
	}
}

func TestEndEndsDerivedContexts(t *testing.T) {
	c := new(Context).Start(t.Context(), time.Now().Add(time.Hour))
	derived, cancel := context.WithCancel(c)
	defer cancel()
	c.End()
	<-derived.Done()
	late := new(Context).Start(t.Context(), time.Now().Add(time.Hour))
	late.End()
	if err := late.Err(); err != context.Canceled {
		t.Errorf("after End: Err = %v, want canceled", err)
	}
	<-late.Done()
}

func TestDeadlineIsTheEarlier(t *testing.T) {
	soon, later := time.Now().Add(time.Minute), time.Now().Add(time.Hour)
	parent, cancel := context.WithDeadline(t.Context(), soon)
	defer cancel()
	for _, limit := range []time.Time{soon, later} {
		if d, ok := new(Context).Start(parent, limit).Deadline(); !ok || !d.Equal(soon) {
			t.Errorf("limit %v: Deadline = %v, %v; want %v", limit, d, ok, soon)
		}
	}
}

func TestPassesValuesOn(t *testing.T) {
	type key struct{}
	c := new(Context).Start(context.WithValue(t.Context(), key{}, "v"), time.Now().Add(time.Hour))
	defer c.End()
	if c.Value(key{}) != "v" {
		t.Error("value of the parent is not seen")
	}
}

func TestUnusedLimitCostsNothing(t *testing.T) {
	parent, limit := t.Context(), time.Now().Add(time.Hour)
	contexts := make([]Context, 200)
	i := 0
	allocs := testing.AllocsPerRun(100, func() {
		c := contexts[i].Start(parent, limit)
		i++
		if err := errors.Join(c.Err()); err != nil {
			t.Fatal(err)
		}
		c.End()
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func TestByLimit(t *testing.T) {
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, test := range []struct {
		ctx  context.Context
		want bool
	}{
		{new(Context).Start(context.Background(), time.Now()), true},
		{new(Context).Start(cancellable, time.Now()), false},
		{cancellable, false},
		{context.Background(), false},
	} {
		if got := ByLimit(test.ctx); got != test.want {
			t.Errorf("%v ends by its limit alone: %v, want %v", test.ctx, got, test.want)
		}
	}
}
