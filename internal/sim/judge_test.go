package sim

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// A call that waits for ever is judged before it ends, also if the last holder of the key
// was killed in Unlock: its claim is left, and the TTL is an hour.
func TestWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, 1, Memory())
		killed := w.Process("killed", &holdfast.Options{TTL: time.Hour})
		killed.Go("1", func(r *Routine) {
			if h, err := r.Lock(r.P.ctx, Want{Key: "k"}); err == nil {
				killed.Link("store").Cut(Both)
				_ = h.Unlock()
			}
		})
		synctest.Wait()
		killed.Kill()
		w.Judge.Calm(time.Second, settled)
		w.Process("waits", nil).Go("1", func(r *Routine) { _, _ = r.Lock(r.P.ctx, Want{Key: "k"}) })
		time.Sleep(time.Minute)
		w.Judge.Overdue()
		const want = "progress: lock: the key has been free for 1m0s"
		if got := w.Judge.Wrong(); len(got) == 0 || got[0] != want { // The call ends with the world, and is judged once more.
			t.Errorf("judged as %q, want %q", got, want)
		}
		w.End()
	})
}

// A lock has a larger token than every lock before. After a fail-over, a call may inherit a claim
// of its process that was granted before, while another process got a larger token.
func TestTokens(t *testing.T) {
	for name, test := range map[string]struct {
		token  uint64
		first  bool // no token was given before
		broken bool
		forgot time.Duration
		before marks
		kind   Kind
		wrong  bool
	}{
		"a larger token":                {token: 10},
		"no token":                      {first: true, wrong: true},
		"no fail-over":                  {token: 6, wrong: true},
		"broken before it was known":    {token: 6, broken: true},
		"before the fail-over":          {token: 6, forgot: time.Second, before: marks{all: 5}},
		"smaller than before already":   {token: 6, forgot: time.Second, before: marks{all: 7}, wrong: true},
		"a slot beside a slot":          {token: 6, forgot: time.Second, before: marks{all: 7, sole: 5}, kind: Slots},
		"a slot before a sole lock":     {token: 6, forgot: time.Second, before: marks{all: 7, sole: 7}, kind: Slots, wrong: true},
		"the leases from then are over": {token: 6, forgot: -time.Second, before: marks{all: 5}, wrong: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := New(t, 1, Memory())
			defer w.End()
			j, k := w.Judge, w.Judge.key("k")
			j.forgot, k.before = test.forgot, test.before
			if !test.first {
				k.top = marks{all: 9, sole: 9}
			}
			r := &Routine{P: w.Process("p", nil)}
			j.tokens(k, &Held{Token: test.token, Want: Want{Kind: test.kind}, r: r}, test.broken)
			if wrong := len(j.Wrong()) > 0; wrong != test.wrong {
				t.Errorf("%s: token %d after 9 is judged as %q", name, test.token, j.Wrong())
			}
		})
	}
}

// A reader whose answer was late may have an older token than an upgrade that was granted meanwhile
// because an operator broke the reader below it. Otherwise no upgrade is granted beside the reader.
func TestTokenBesideUpgrade(t *testing.T) {
	for _, orphan := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := New(t, 1, Memory())
			defer w.End()
			j, k := w.Judge, w.Judge.key("k")
			r := &Routine{P: w.Process("p", nil)}
			j.tokens(k, &Held{Token: 9, Want: Want{Kind: Upgrade}, orphan: orphan, r: r}, orphan)
			j.tokens(k, &Held{Token: 6, Want: Want{Kind: Shared}, r: r}, false)
			if wrong := len(j.Wrong()) > 0; wrong == orphan {
				t.Errorf("orphan %v: judged as %q", orphan, j.Wrong())
			}
		})
	}
}

// A process that stops no watch leaves a watcher in the store.
func TestWatcherIsLeft(t *testing.T) {
	for name, store := range map[string]func(*World) Store{"memory": Memory(), "server": Serve()} {
		for stops, want := range map[bool][]string{true: nil, false: {"left: the store still has 2 watchers"}} {
			synctest.Test(t, func(t *testing.T) {
				w := New(t, 1, store)
				far := w.store.Connect(w.Process("p", nil))
				notified := far.(driver.Notifier).Notify(func(string, string, error) {})
				woken, err := far.(driver.Watcher).Watch(t.Context(), driver.Claim{Key: "k", ID: "1"}, func(driver.Grant) {})
				if err != nil {
					t.Fatal(err)
				}
				if stops {
					notified()
					woken()
				}
				w.End()
				w.tidy()
				if got := w.Judge.Wrong(); !slices.Equal(got, want) {
					t.Errorf("%s: judged as %q, want %q; all is stopped: %v", name, got, want, stops)
				}
			})
		}
	}
}

// A bare store has no tokens.
type bare struct{ *memory }

func (b bare) Connect(p *Process) driver.Store { return Over(p.Link("store"), tokenless{b.client()}) }

type tokenless struct{ driver.Store }

func (s tokenless) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	g, err := s.Store.Acquire(ctx, a)
	g.Fence = 0
	return g, err
}

// The judge finds a store without tokens.
func TestStoreWithoutTokens(t *testing.T) {
	for fenced, check := range map[bool]string{true: "error: ", false: "tokens: "} {
		synctest.Test(t, func(t *testing.T) {
			w := New(t, 1, func(w *World) Store { return bare{Memory()(w).(*memory)} })
			w.Process("p", nil).Go("1", func(r *Routine) {
				if h, err := r.Lock(r.P.ctx, Want{Key: "k", Fenced: fenced}); err == nil {
					_ = h.Unlock()
				}
			})
			w.Wait()
			w.End()
			if wrong := w.Judge.Wrong(); len(wrong) == 0 || !strings.HasPrefix(wrong[0], check) {
				t.Errorf("judged as %q, want %q; with Fenced: %v", wrong, check, fenced)
			}
		})
	}
}
