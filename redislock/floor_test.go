package redislock_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// The largest token: its neighbours are exact in a float64 too.
const maxToken = 1<<53 - 1

// TestTokensEnd puts the highest token just below and beyond the end, and wants
// tokens that differ, or an error that names the key to set.
func TestTokensEnd(t *testing.T) {
	server, store := openProven(t)
	for _, span := range []int{1, 2, 3, driver.MaxSpan} {
		for below := range 4 {
			last := uint64(maxToken - span - below + 1)
			setFloor(server, strconv.FormatUint(last, 10))
			for n := range 8 {
				c := exclusive("key", fmt.Sprint(span, below, n))
				a := driver.Ask{Claim: c, Span: span, Fence: last + 1}
				if n > 0 {
					a.Fence = 0
				}
				most := max(last+1, a.Fence+uint64(span)-1)
				g, err := store.Acquire(t.Context(), a)
				if err != nil {
					wantFloorError(t, err, strconv.FormatUint(last, 10))
					if most <= maxToken {
						t.Errorf("after %d a span of %d from %d is refused, though it fits", last, span, a.Fence)
					}
					if a.Fence > 0 {
						continue
					}
					break
				}
				if g.Fence <= last || g.Fence < a.Fence || lastOf(g) > maxToken {
					t.Fatalf("after %d a span of %d from %d got %+v", last, span, a.Fence, g)
				}
				last = lastOf(g)
				if err := store.Release(t.Context(), []driver.Release{{Claim: c}})[0]; err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestSpoiledFloor writes what is no token where the highest token is kept.
func TestSpoiledFloor(t *testing.T) {
	server := servers.StartRedis(t)
	store := openStore(t, server.URL())
	for _, floor := range []string{"nan", "-nan", "inf", "-inf", "-1", "1.5", "garbage", "", "9007199254740992", "18446744073709551616", "1e300"} {
		t.Run(floor, func(t *testing.T) {
			for name, call := range map[string]func(key string) error{
				"free": func(key string) error {
					_, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive(key, key)})
					return err
				},
				"at least": func(key string) error {
					_, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive(key, key), Fence: 1})
					return err
				},
				"raise": func(key string) error {
					server.Must("DEL", "holdfast:floor")
					c := exclusive(key, key)
					if g, err := store.Acquire(t.Context(), driver.Ask{Claim: c}); err != nil || !g.OK {
						t.Fatal(g, err)
					}
					setFloor(server, floor)
					return store.Renew(t.Context(), []driver.Renewal{{Claim: c, Fence: maxToken - driver.MaxSpan + 1}})[0]
				},
				"late": func(key string) error {
					// A tomb makes a claim go the long way.
					c := exclusive(key, key)
					if err := store.Release(t.Context(), []driver.Release{{Claim: c, Late: true}})[0]; !errors.Is(err, driver.ErrLost) {
						t.Fatal(err)
					}
					c.ID += " another"
					_, err := store.Acquire(t.Context(), driver.Ask{Claim: c})
					return err
				},
			} {
				setFloor(server, floor)
				err := call(name)
				wantFloorError(t, err, floor)
				if got, _ := server.Must("GET", "holdfast:floor").(string); got != floor {
					t.Errorf("%s: the floor was %q and is now %q", name, floor, got)
				}
			}
		})
	}
}

// TestSpoiledFloorInLine lets a holder go while the floor is no number: what it
// holds goes on and ends as ever, and the waiter is told why it gets nothing.
func TestSpoiledFloorInLine(t *testing.T) {
	server := servers.StartRedis(t)
	store := openStore(t, server.URL())
	for _, floor := range []string{"nan", strconv.FormatUint(maxToken, 10)} {
		server.Must("FLUSHALL")
		holder := driver.Ask{Claim: exclusive("key", "holder "+floor)}
		waiter := driver.Ask{Claim: exclusive("key", "waiter "+floor), Wait: true}
		if g, err := store.Acquire(t.Context(), holder); err != nil || !g.OK {
			t.Fatal(g, err)
		}
		if g, err := store.Acquire(t.Context(), waiter); err != nil || g.OK {
			t.Fatal(g, err)
		}
		setFloor(server, floor)
		if g, err := store.Acquire(t.Context(), holder); err != nil || !g.OK {
			t.Error("a holder that asks again:", g, err)
		}
		if err := store.Renew(t.Context(), []driver.Renewal{{Claim: holder.Claim}})[0]; err != nil {
			t.Error(err)
		}
		if err := store.Release(t.Context(), []driver.Release{{Claim: holder.Claim}})[0]; err != nil {
			t.Error(err)
		}
		_, err := store.Acquire(t.Context(), waiter)
		wantFloorError(t, err, floor)
	}
}

// TestSpoiledFloorTogether has many ask at once, who go in one script.
func TestSpoiledFloorTogether(t *testing.T) {
	server := servers.StartRedis(t)
	store := openStore(t, server.URL())
	for _, floor := range []string{"nan", "garbage", strconv.FormatUint(maxToken-2*driver.MaxSpan, 10)} {
		setFloor(server, floor)
		var group sync.WaitGroup
		var mu sync.Mutex
		given := make(map[uint64]bool)
		for n := range 300 {
			group.Go(func() {
				c := exclusive(fmt.Sprint("key ", floor, n), fmt.Sprint("id ", floor, n))
				g, err := store.Acquire(t.Context(), driver.Ask{Claim: c, Span: driver.MaxSpan})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					wantFloorError(t, err, "")
				} else if given[g.Fence] || lastOf(g) > maxToken {
					t.Errorf("token %d was given twice, or goes beyond the end", g.Fence)
				}
				given[g.Fence] = true
			})
		}
		group.Wait()
	}
}

// TestTokensKeepPaceWithTheClock asks for more tokens than the clock has microseconds: no
// token is ahead by more than the lead, so tokens grow though the server forgets them all.
func TestTokensKeepPaceWithTheClock(t *testing.T) {
	server, store := openProven(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var highest uint64
	for i := range 64 {
		all.Go(func() {
			for n := range 20 {
				c := exclusive(fmt.Sprint("key", i), fmt.Sprint(i, "-", n))
				g, err := store.Acquire(t.Context(), driver.Ask{Claim: c, Span: driver.MaxSpan})
				if err != nil || !g.OK {
					t.Error(g, err)
				}
				mu.Lock()
				highest = max(highest, lastOf(g))
				mu.Unlock()
				if err := store.Release(t.Context(), []driver.Release{{Claim: c}})[0]; err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	const lead = 4096
	for n := range 50 {
		floor, err := strconv.ParseUint(server.Must("GET", "holdfast:floor").(string), 10, 64)
		if now := clockOf(server); err != nil || floor != highest || highest > now+lead {
			t.Fatalf("the floor is %d, the highest token %d, the clock %d", floor, highest, now)
		}
		server.Must("FLUSHALL")
		g, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive("key", fmt.Sprint(n)), Span: driver.MaxSpan})
		if err != nil || g.Fence <= highest {
			t.Fatalf("after FLUSHALL, the token is %d after %d: %v", g.Fence, highest, err)
		}
		highest = lastOf(g)
	}
}

// lastOf returns the last token of a grant.
func lastOf(g driver.Grant) uint64 { return g.Fence + uint64(g.Span) - 1 }

// clockOf returns the microseconds of the server's clock.
func clockOf(server *servers.Redis) uint64 {
	list := server.Must("TIME").([]any)
	seconds, _ := strconv.ParseUint(fmt.Sprint(list[0]), 10, 64)
	micros, _ := strconv.ParseUint(fmt.Sprint(list[1]), 10, 64)
	return seconds*1e6 + micros
}

func setFloor(server *servers.Redis, floor string) { server.Must("SET", "holdfast:floor", floor) }

// wantFloorError wants the key of the floor, its value, and what would be right.
func wantFloorError(t *testing.T, err error, floor string) {
	t.Helper()
	if !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("with the floor %q: %v, want ErrInvalid", floor, err)
		return
	}
	for _, part := range []string{`"holdfast:floor"`, floor, "2^53"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want it to tell %q", err, part)
		}
	}
}
