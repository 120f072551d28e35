package oncetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/once"
)

// A mutant is records that do one thing wrong, and the rule that is there to find
// it.
type mutant struct {
	name  string
	rule  string
	spoil func(w *ways)
}

// ways are what records do, each of which may be spoilt.
type ways struct {
	right  once.Records
	load   func(key string) (once.Record, error)
	begin  func(key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error)
	finish func(key string, token uint64, result []byte, keep time.Duration) error
	forget func(key string, token uint64) error
	ended  error // what a call with an ended context says
}

func newWays(right once.Records) *ways {
	ctx := context.Background()
	return &ways{
		right: right,
		load:  func(key string) (once.Record, error) { return right.Load(ctx, key) },
		begin: func(key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
			return right.Begin(ctx, key, token, fingerprint, keep)
		},
		finish: func(key string, token uint64, result []byte, keep time.Duration) error {
			return right.Finish(ctx, key, token, result, keep)
		},
		forget: func(key string, token uint64) error { return right.Forget(ctx, key, token) },
	}
}

func (w *ways) Load(ctx context.Context, key string) (once.Record, error) {
	if ctx.Err() != nil && w.ended != nil {
		return once.Record{}, w.ended
	}
	return w.load(key)
}

func (w *ways) Begin(_ context.Context, key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
	return w.begin(key, token, fingerprint, keep)
}

func (w *ways) Finish(_ context.Context, key string, token uint64, result []byte, keep time.Duration) error {
	return w.finish(key, token, result, keep)
}

func (w *ways) Forget(_ context.Context, key string, token uint64) error { return w.forget(key, token) }

// now is what is remembered, read beside the client.
func (w *ways) now(key string) once.Record {
	r, _ := w.right.Load(context.Background(), key)
	return r
}

// refused is the error for a token that is too small.
func (w *ways) refused(key string) error { return w.forget(key, w.now(key).Token-1) }

// write makes the record of a key what it is not: it forgets, with this token,
// begins and, if it is to, finishes.
func (w *ways) write(key string, r once.Record, keep time.Duration) {
	ctx := context.Background()
	_ = w.right.Forget(ctx, key, r.Token)
	_, _ = w.right.Begin(ctx, key, r.Token, r.Fingerprint, keep)
	if r.State == once.Done {
		_ = w.right.Finish(ctx, key, r.Token, r.Result, keep)
	}
}

// open returns the harness of records that are spoilt.
func open(spoil func(*ways)) Harness {
	var all sync.Map
	return Harness{Bubble: true, Open: func(t testing.TB) once.Records {
		right, _ := all.LoadOrStore(t, &once.Memory{})
		w := newWays(right.(once.Records))
		spoil(w)
		return w
	}}
}

func TestUnbroken(t *testing.T) { Run(t, open(func(*ways) {})) }

// TestMutants checks that the suite finds each mutant by the rule that is meant
// for it.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			failures := Check(t, open(m.spoil), m.rule)
			if len(failures) != 1 {
				t.Fatalf("records that %s pass %s", m.name, m.rule)
			}
			t.Log(failures[0])
		})
	}
}

// TestEveryRuleIsBroken checks that no rule is without a mutant: one that nothing
// breaks may be checking nothing.
func TestEveryRuleIsBroken(t *testing.T) {
	for _, r := range all {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.rule == r.name }) {
			t.Errorf("no mutant breaks %s: %s", r.name, r.words)
		}
	}
}
