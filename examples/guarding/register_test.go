package guarding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A tally is how a number of registrations of a phone number went.
type tally struct{ Won, Taken int }

// 64 goroutines of four processes register the same phone number many times, and then
// the next.
func TestRegistrationRace(t *testing.T) {
	const processes, goroutines = 4, 16
	times, phones := 500, 8
	if testing.Short() {
		times, phones = 128, 2
	}
	tallies := make([]map[string]tally, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := worker(t, "register", server.URL(), strconv.Itoa(i), strconv.Itoa(goroutines), strconv.Itoa(times/processes), strconv.Itoa(phones))
			out, err := cmd.Output()
			if err == nil {
				err = json.Unmarshal(out, &tallies[i])
			}
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for n := range phones {
		var all tally
		for _, of := range tallies {
			all.Won += of[phone(n)].Won
			all.Taken += of[phone(n)].Taken
		}
		rows := strings.TrimSpace(server.Must(`SELECT count(*) FROM registrations WHERE phone = '` + phone(n) + `'`))
		if (all != tally{Won: 1, Taken: times - 1}) || rows != "1" {
			t.Errorf("%s: %+v and %s rows; want one to win and one row", phone(n), all, rows)
		}
	}
}

func phone(n int) string { return fmt.Sprintf("+49 30 90%02d", n) }

// registerMany is the worker: goroutines register each phone number so many times
// in all, by turns with pgx and with GORM.
func registerMany(args []string) error {
	url, process := args[0], args[1]
	goroutines, times, phones := number(args[2]), number(args[3]), number(args[4])
	ctx := context.Background()
	p, err := start(ctx, url, goroutines, nil)
	if err != nil {
		return err
	}
	defer p.end()
	var mu sync.Mutex
	tallies, failures := make(map[string]tally), error(nil)
	count := func(n, attempt int) {
		register := p.pgx.Register
		if attempt%2 == 1 {
			register = p.gorm.Register
		}
		err := register(ctx, phone(n), fmt.Sprintf("user %s/%d", process, attempt))
		mu.Lock()
		defer mu.Unlock()
		of := tallies[phone(n)]
		var taken *TakenError
		switch {
		case err == nil:
			of.Won++
		case errors.As(err, &taken) && strings.HasPrefix(taken.Owner, "user "):
			of.Taken++
		default:
			failures = errors.Join(failures, err)
		}
		tallies[phone(n)] = of
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for n := range phones {
				for attempt := g; attempt < times; attempt += goroutines {
					count(n, attempt)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(failures, json.NewEncoder(os.Stdout).Encode(tallies))
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
