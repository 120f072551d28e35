package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func nothing() error { return nil }

func TestMemory(t *testing.T) {
	var m Memory
	for i, c := range []struct {
		key   string
		token uint64
		ok    bool
	}{{"a", 7, true}, {"a", 7, true}, {"a", 9, true}, {"a", 7, false}, {"b", 1, true}, {"a", 9, true}} {
		err := m.Check(t.Context(), c.key, c.token, nothing)
		var outdated *OutdatedError
		if c.ok && err != nil || !c.ok && (!errors.As(err, &outdated) || *outdated != OutdatedError{"a", 7, 9} || !errors.Is(err, ErrOutdated)) {
			t.Errorf("check %d: %v", i, err)
		}
	}
	broken := errors.New("broken")
	if err := m.Check(t.Context(), "a", 11, func() error { return broken }); err != broken {
		t.Errorf("the error of the write came out as %v", err)
	}
	if err := m.Check(t.Context(), "a", 10, nothing); !errors.Is(err, ErrOutdated) {
		t.Errorf("a token whose write failed was forgotten: %v", err)
	}
	for _, c := range []struct {
		key   string
		token uint64
		want  string
	}{{"", 1, "key is empty"}, {strings.Repeat("k", 513), 1, "513 bytes"}, {"k", 0, "token is 0"}, {"k", 1 << 63, "beyond"}} {
		if err := m.Check(t.Context(), c.key, c.token, nothing); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.10q, %d: %v, want %q", c.key, c.token, err, c.want)
		}
	}
}

func TestMemoryLetsWritesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		end := make(chan struct{})
		var writing atomic.Int32
		write := func() error {
			writing.Add(1)
			defer writing.Add(-1)
			<-end
			return nil
		}
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if err := m.Check(t.Context(), "a", 7, write); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := writing.Load(); n != 2 {
			t.Errorf("%d writes of one holder at the same time, want 2", n)
		}
		all.Go(func() {
			err := m.Check(t.Context(), "a", 9, func() error {
				if n := writing.Load(); n != 0 {
					t.Errorf("%d writes of a former holder beside that of the next", n)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Check(ctx, "a", 9, nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that is cut short: %v", err)
		}
		close(end)
		all.Wait()
	})
}

func TestMemorySurvivesPanics(t *testing.T) {
	var m Memory
	func() {
		defer func() { recover() }()
		m.Check(t.Context(), "a", 7, func() error { panic("write") })
	}()
	if err := m.Check(t.Context(), "a", 9, nothing); err != nil {
		t.Error(err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := Memory{Max: 10}
	err := m.Check(t.Context(), "used", 7, func() error {
		for i := range 1000 {
			if err := m.Check(t.Context(), fmt.Sprint(i), 7, nothing); err != nil {
				return err
			}
			if err := m.Check(t.Context(), "0", 7, nothing); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(m.keys) != 10 || m.idle.Len() != 10 {
		t.Errorf("%v; remembers %d keys, %d of them idle; want 10", err, len(m.keys), m.idle.Len())
	}
	for key, kept := range map[string]bool{"0": true, "999": true, "used": true, "500": false} {
		if err := m.Check(t.Context(), key, 6, nothing); errors.Is(err, ErrOutdated) != kept {
			t.Errorf("key %s is remembered: %v, want %v", key, !kept, kept)
		}
	}
}

// Writers of many holders, in any order: the tokens of those that write never fall.
func TestMemoryUnderLoad(t *testing.T) {
	var m Memory
	var last [4]atomic.Uint64
	var all sync.WaitGroup
	for g := range uint64(8) {
		all.Go(func() {
			for i := range uint64(500) {
				key, token := (g+i)%4, 1+i*8+g
				err := m.Check(t.Context(), fmt.Sprint(key), token, func() error {
					if before := last[key].Swap(token); before > token {
						t.Errorf("key %d: token %d after %d", key, token, before)
					}
					return nil
				})
				if err != nil && !errors.Is(err, ErrOutdated) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
