package backoff

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A process goes on for a while after others have come, then leaves the key to them, and
// begins anew.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys Keys
		for range 3 {
			for start := time.Now(); time.Since(start) <= turn; time.Sleep(turn / 10) {
				keys.Released("key")
				if keys.Resting("key") {
					t.Fatalf("has to rest after %v", time.Since(start))
				}
			}
			keys.Released("key")
			if !keys.Resting("key") || keys.Resting("other") {
				t.Fatal("need not rest after its turn, or has to on another key")
			}
			start := time.Now()
			for keys.Resting("key") {
				time.Sleep(time.Millisecond)
			}
			if d := time.Since(start); d < Pause/2 || d > Pause+time.Millisecond {
				t.Errorf("rested for %v, want %v to %v", d, Pause/2, Pause)
			}
		}
	})
}

// Releases during a rest do not make it longer, and one long after begins a turn.
func TestRestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys Keys
		keys.Released("key")
		time.Sleep(2 * turn)
		start := time.Now()
		for keys.Released("key"); keys.Resting("key"); time.Sleep(Pause / 100) {
			if time.Since(start) > 2*Pause {
				t.Fatal("rests for ever")
			}
			keys.Released("key")
		}
		keys.Released("key")
		if keys.Resting("key") {
			t.Error("a turn begins with a rest")
		}
	})
}

// During a rest the looks become rare, and the last is just after its end.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys Keys
		keys.Released("key")
		time.Sleep(2 * turn)
		keys.Released("key")
		start, back := time.Now(), keys.byKey["key"].back
		looks := 0
		for pause := keys.Look("key", time.Millisecond); pause > 0; pause = keys.Look("key", time.Millisecond) {
			time.Sleep(pause)
			looks++
		}
		if over := time.Since(back); over < 0 || over > time.Millisecond || looks > 11 {
			t.Errorf("%d looks within %v, want a few, the last after %v", looks, time.Since(start), back.Sub(start))
		}
	})
}

// Keys that nobody comes back to are forgotten.
func TestForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys Keys
		for i := range 10 * fewKeys {
			keys.Released(fmt.Sprint(i))
			time.Sleep(old / fewKeys)
		}
		if n := len(keys.byKey); n > 3*fewKeys {
			t.Errorf("%d keys are remembered", n)
		}
	})
}
