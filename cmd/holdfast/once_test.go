//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A run looks for its mark by a lock on the key of the mark. If the store does not answer the
// Unlock, the claim stands until the TTL ends. Such a claim is no mark, and the next run has
// to wait for its end.
func TestOncePerWaitsForALookThatWasLeft(t *testing.T) {
	url := "file://" + t.TempDir()
	locks := must.Get(holdfast.Open(t.Context(), url, nil))
	defer locks.Close()
	look := must.Get(servers.Patient(t.Context(), locks.Lock, "holdfast/ran/key"))

	out := make(chan string, 1)
	go func() {
		var text []byte
		err := insist(func() error {
			more, err := exec.Command("holdfast", "run", "--store", url, "--once-per", "1h", "key", "--", "echo", "ran").CombinedOutput()
			text = append(text, more...)
			return err
		})
		out <- fmt.Sprint(string(text), err)
	}()
	servers.Until(t, "a run that waits for the end of the look", func() bool {
		holders, _ := locks.Holders(t.Context(), "holdfast/ran/key")
		return len(holders) == 2 || len(out) > 0
	})
	_ = look.Unlock() // the Locker goes on if the store is late
	select {
	case text := <-out:
		if !strings.Contains(text, `waiting to learn whether "key" has run`) || !strings.Contains(text, "\nran\n") {
			t.Errorf("the run wrote %q, want that it waits, and that the command runs", text)
		}
	case <-time.After(patient):
		t.Error("the run does not end")
	}
}
