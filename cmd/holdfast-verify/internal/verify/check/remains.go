package check

import (
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// Left checks [Tidy]: processes have ended in the intended way, their Lockers have left
// nothing behind, and the store shows no claims any more.
func (r *Run) Left(claims map[string][]driver.Holder) (all []Violation) {
	for _, l := range r.Lives {
		name := fmt.Sprintf("worker %d.%d", l.Worker, l.Life)
		switch {
		case l.Bye && l.Remains != "":
			all = append(all, Violation{Check: Tidy, At: l.Died, Text: name + " has closed its Locker: " + l.Remains})
		case l.crashed(), !l.Bye && l.End == "":
			all = append(all, Violation{Check: Tidy, At: l.Died, Text: name + " has not ended as it should: " + l.End})
		}
	}
	for key, holders := range claims {
		for _, h := range holders {
			what := "holds"
			if h.Waiting {
				what = "waits for"
			}
			all = append(all, Violation{Check: Tidy, Key: key, Text: fmt.Sprintf("%s still %s the key", h.Owner, what)})
		}
	}
	return all
}

const (
	// Killed is the end of a process that was ended by kill -9.
	Killed = "killed"

	// Unready is the end of a process that has not reached the store. The run itself has failed
	// then, and no promise is broken.
	Unready = "not ready"
)

// crashed reports whether a process has ended in an unintended way.
func (l *Life) crashed() bool { return l.End != "" && l.End != Killed && l.End != Unready }
