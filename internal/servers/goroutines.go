package servers

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
)

// Goroutines returns a function that counts the caller's goroutine and its descendants from
// now on. Goroutines of concurrent tests do not count, nor do functions called by a timer.
func Goroutines(tb TB) (count func() int) {
	mark := fmt.Sprintf("%p", tb) // There is one for each test.
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("test", mark)))
	return func() (all int) {
		var profile bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			tb.Fatalf("count goroutines: %v", err)
		}
		same := 0 // Goroutines with the same stack and labels; the profile tells their number first.
		for line := range strings.Lines(profile.String()) {
			if strings.HasPrefix(line, "# labels:") && strings.Contains(line, mark) {
				all += same
			}
			fmt.Sscanf(line, "%d @", &same)
		}
		return all
	}
}
