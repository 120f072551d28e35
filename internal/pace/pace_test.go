package pace_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/pace"
)

func TestNext(t *testing.T) {
	const ms = time.Millisecond
	var p pace.Pace
	for i, step := range []struct{ least, most, want time.Duration }{
		{0, 500 * ms, 5 * ms},
		{0, 500 * ms, 10 * ms},
		{0, 15 * ms, 15 * ms},
		{100 * ms, 500 * ms, 100 * ms},
		{100 * ms, 500 * ms, 200 * ms},
		{50 * ms, 500 * ms, 100 * ms}, // moved up
		{50 * ms, 500 * ms, 200 * ms},
		{0, 500 * ms, 100 * ms},
		{0, ms, ms},
	} {
		if got := p.Next(step.least, step.most); got != step.want {
			t.Errorf("step %d: a pause of %v, want %v", i, got, step.want)
		}
	}
}

func TestSpread(t *testing.T) {
	for range 100 {
		if got := pace.Spread(10); got < 5 || got > 10 {
			t.Fatalf("%v of 10ns", got)
		}
	}
	if got := pace.Spread(0); got != 0 {
		t.Errorf("%v of nothing", got)
	}
}
