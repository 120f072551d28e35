package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cli"
)

// longest is the longest duration that a lock accepts.
const longest = 366 * 24 * time.Hour

// wrongValue returns an error for wrong flags, in the words of the flags. The library would
// refuse most of these values too, in the words of its options.
func (j *job) wrongValue() error {
	set := j.flags.Flags().Changed
	for _, d := range []struct {
		flag             string
		value, low, high time.Duration
	}{
		{"wait", j.wait, 0, longest},
		{"ttl", j.ttl, holdfast.MinTTL, holdfast.MaxTTL},
		{"max-hold", j.maxHold, 1, longest},
		{"at-least", j.atLeast, 1, longest},
		{"once-per", j.oncePer, 1, longest},
	} {
		if set(d.flag) && (d.value < d.low || d.value > d.high) {
			return fmt.Errorf("--%s %s must be %s %s", d.flag, cli.Short(d.value), from(d.low), cli.Short(d.high))
		}
	}
	switch {
	case lossSignals[j.signal] == nil:
		return fmt.Errorf("--signal %q must be %s", j.signal, lossNames)
	// A renewal is due after a third of the TTL: with a longer grace the command would be
	// ended before the renewal had a chance.
	case set("grace") && (j.grace < 0 || j.grace > j.ttl/2):
		return fmt.Errorf("--grace %s must be from 0s to half of the TTL, which is %s", cli.Short(j.grace), cli.Short(j.ttl/2))
	case set("slots") && (j.slots < 1 || j.slots > holdfast.MaxSlots):
		return fmt.Errorf("--slots %d must be from 1 to %d", j.slots, holdfast.MaxSlots)
	case j.shared && set("slots"):
		return errors.New("--shared and --slots exclude each other")
	case set("weight") && !set("slots"):
		return errors.New("--weight needs --slots")
	case set("weight") && (j.weight < 1 || j.weight > j.slots):
		return fmt.Errorf("--weight %d must be from 1 to the number of --slots, which is %d", j.weight, j.slots)
	case j.conflict < 0 || j.conflict > 255:
		return fmt.Errorf("--conflict-exit-code %d must be from 0 to 255", j.conflict)
	case j.try && set("wait"):
		return errors.New("--try and --wait exclude each other")
	case set("once-per") && (j.shared || set("slots")):
		return errors.New("--once-per needs the whole lock: leave out --shared and --slots")
	}
	return nil
}

// from begins a range of durations.
func from(low time.Duration) string {
	if low == 1 {
		return "above 0 and at most"
	}
	return "from " + cli.Short(low) + " to"
}
