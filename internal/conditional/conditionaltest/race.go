package conditionaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
)

const (
	racers = 8   // clients in each race
	rounds = 200 // races of a test
)

// A Racer is a client of a register, with the methods of a [caslock.Register] that a race calls.
type Racer interface {
	Read(ctx context.Context, key string) (caslock.Record, error)
	Swap(ctx context.Context, key, version string, data []byte, keep time.Duration) (next string, err error)
}

// Race has 8 clients write the same key at the same time, in 200 races, or in as many as short says
// if the tests run with -short. In every second race the clients create the record, in the others
// they replace the record of the race before. One client wins each race, and the others hear that
// the record has another version. open returns a new client.
func Race(t *testing.T, short int, open func() Racer) {
	clients := make([]Racer, racers)
	for i := range clients {
		clients[i] = open()
	}
	n := rounds
	if testing.Short() {
		n = short
	}
	if err := races(t.Context(), n, clients); err != nil {
		t.Error(err)
	}
}

// races returns what was wrong in the first race that was not as it should be.
func races(ctx context.Context, rounds int, clients []Racer) error {
	version := ""
	for round := range rounds {
		key := fmt.Sprintf("race %d", round/2)
		if round%2 == 0 {
			version = ""
		}
		next, err := race(ctx, key, version, round, clients)
		if err != nil {
			return fmt.Errorf("race %d, from version %q: %w", round, version, err)
		}
		version = next
	}
	return nil
}

// race is one race. It returns the version of the winner.
func race(ctx context.Context, key, version string, round int, clients []Racer) (next string, err error) {
	versions, errs := make([]string, len(clients)), make([]error, len(clients))
	data := func(i int) string { return fmt.Sprintf(`{"race":%d,"client":%d}`, round, i) } // never the same twice
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			<-start
			versions[i], errs[i] = c.Swap(ctx, key, version, []byte(data(i)), 2*time.Hour)
		})
	}
	close(start)
	all.Wait()
	var winners []int
	for i, err := range errs {
		switch {
		case err == nil:
			winners = append(winners, i)
		case !errors.Is(err, caslock.ErrConflict):
			return "", fmt.Errorf("client %d: %w", i, err)
		}
	}
	if len(winners) != 1 {
		return "", fmt.Errorf("%d clients have won: %v", len(winners), winners)
	}
	winner := winners[0]
	reader := (winner + 1) % len(clients)
	r, err := clients[reader].Read(ctx, key)
	if err != nil {
		return "", fmt.Errorf("client %d reads: %w", reader, err)
	}
	if r.Version != versions[winner] || string(r.Data) != data(winner) {
		return "", fmt.Errorf("client %d has won with version %q, but client %d reads %v: %s", winner, versions[winner], reader, r, r.Data)
	}
	return r.Version, nil
}
