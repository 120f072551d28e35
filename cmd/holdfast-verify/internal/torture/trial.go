package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// The trials besides the trials of single nemeses.
const (
	allPromised = "promised" // every fault together that the store promises to stand
	longLived   = "long"     // a fault that a lock with a TTL of longLease outlasts
	allPossible = "all"      // every possible fault together
)

// longLease is a TTL with which verify can tell a lock that was not renewed from a slow
// machine.
const longLease = 20 * time.Second

// shortest is how long a trial has to be for a fault to come, and for the checks to have
// something to look at.
const shortest = 5 * time.Second

// A trial is a run of verify.
type trial struct {
	store   string
	faults  string         // a nemesis, or the name of a combination
	nemeses []plan.Nemesis // the faults to do
	stands  bool           // the store promises to stand the faults
}

// choose returns the trials of the named stores and faults, in order. An empty list names
// everything.
func choose(stores, faults []string) (chosen []trial, err error) {
	for _, name := range stores {
		if _, _, err := verify.Faults(name); err != nil {
			return nil, fmt.Errorf("-store: %w", err)
		}
	}
	for _, name := range faults {
		if !slices.Contains(columns(), name) {
			return nil, fmt.Errorf("-nemesis: there is no %q: known are %s", name, plan.List(columns()))
		}
	}
	for _, store := range verify.Engines() {
		if len(stores) > 0 && !slices.Contains(stores, store) {
			continue
		}
		trials, err := trialsOf(store)
		if err != nil {
			return nil, err
		}
		for _, t := range trials {
			if len(faults) == 0 || slices.Contains(faults, t.faults) {
				chosen = append(chosen, t)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("none of these faults can be done to these stores: holdfast verify --start STORE --nemesis FAULT says what can")
	}
	return chosen, nil
}

// columns returns every kind of trial, in order.
func columns() (names []string) {
	for _, n := range plan.Nemeses() {
		names = append(names, string(n))
	}
	return append(names, allPromised, longLived, allPossible)
}

// trialsOf returns the trials of a store, in order. If the store promises to stand every
// fault, the faults together are not done twice.
func trialsOf(store string) (trials []trial, err error) {
	can, stands, err := verify.Faults(store)
	if err != nil {
		return nil, err
	}
	for _, n := range can {
		trials = append(trials, trial{store, string(n), []plan.Nemesis{n}, slices.Contains(stands, n)})
	}
	trials = append(trials, trial{store, allPromised, stands, true}, trial{store, longLived, outlasted(store, stands), true})
	if len(stands) < len(can) {
		trials = append(trials, trial{store, allPossible, can, false})
	}
	return trials, nil
}

// outlasted returns a fault that the store stands, and by which no lock with a longLease is
// lost: the fault does not harm the holder, or cut off the holder from the store. If a
// majority of servers decides, a server may be away for any time.
func outlasted(store string, stands []plan.Nemesis) []plan.Nemesis {
	first := plan.Restart
	if majority(store) {
		first = plan.KillStore
	}
	for _, n := range []plan.Nemesis{first, plan.WorkerClock} {
		if slices.Contains(stands, n) {
			return []plan.Nemesis{n}
		}
	}
	return []plan.Nemesis{plan.Kill} // does not harm the remaining workers
}

// majority reports whether the store is several servers that decide together.
func majority(store string) bool {
	_, servers, many := strings.Cut(store, ":")
	return many && servers != "2" // a replica has no vote
}

// lasts returns the length of the trial, for a given length of trials of a single fault.
// Harmed servers need time to recover, and then time to show the recovery. So server
// faults, and several faults together, need longer.
func (t trial) lasts(single time.Duration) time.Duration {
	switch {
	case t.faults == longLived:
		return longLease * 5 / 2
	case len(t.nemeses) == 1 && t.nemeses[0].Server():
		return 3 * single
	case len(t.nemeses) == 1:
		return single
	}
	var many time.Duration
	for _, n := range t.nemeses {
		if many += 6 * time.Second; n.Server() {
			many += 4 * time.Second
		}
	}
	return max(3*single, many)
}

// fitting returns the length of a trial of a single fault for which the trials fit into a
// time, with the given number at once.
func fitting(trials []trial, within time.Duration, parallel int) (length time.Duration) {
	const besides = 15 * time.Second // to start servers, to wait for the remains, to check
	longest := within * time.Duration(parallel)
	for length = time.Second; ; length += time.Second {
		var sum time.Duration
		for _, t := range trials {
			sum += t.lasts(length) + besides
		}
		if sum > longest {
			return length - time.Second
		}
	}
}

// flags returns the flags of verify.
func (t trial) flags(single time.Duration, seed uint64) []string {
	flags := []string{"--start", t.store}
	if t.faults != allPromised { // the default of verify
		flags = append(flags, "--nemesis", plan.List(t.nemeses))
	}
	clients := t.clients()
	keys := 2 * clients
	if t.faults == longLived { // the first client of each process holds most of the locks that have to be renewed
		clients /= 2
		flags = append(flags, "--ttl", longLease.String(), "--workers", strconv.Itoa(2*verify.Default().Workers))
	}
	return append(flags, "--for", t.lasts(single).String(), "--clients", strconv.Itoa(clients), "--keys", strconv.Itoa(keys), "--seed", strconv.FormatUint(seed, 10))
}

// clients returns how many goroutines of each process keep two processors busy. Servers
// that agree about everything need some processor time for themselves. With twice as many
// keys as goroutines, most keys are free.
func (t trial) clients() int {
	switch {
	case t.store == "azblob": // whose emulator has one thread
		return 4
	case majority(t.store):
		return 8
	}
	return 16
}
