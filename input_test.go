package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestBadInput(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(&Options{Prefix: "p/"})
		long := strings.Repeat("x", 511)
		noop := func(context.Context) error { return nil }
		cases := []struct {
			key  string
			opts []LockOption
			want string // in the message
		}{
			{"", nil, "empty"},
			{long, nil, "513 bytes"},
			{"a\xffb", nil, "UTF-8"},
			{"k", []LockOption{TTL(time.Millisecond)}, "100ms"},
			{"k", []LockOption{TTL(-time.Second)}, "100ms"},
			{"k", []LockOption{TTL(1000 * time.Hour)}, "24h"},
			{"k", []LockOption{Wait(-1)}, "Wait(-1ns)"},
			{"k", []LockOption{Wait(1 << 62)}, "Wait("},
			{"k", []LockOption{Backoff(0, 0)}, "Backoff(0s, 0s)"},
			{"k", []LockOption{Backoff(time.Minute, time.Second)}, "the least first"},
			{"k", []LockOption{Backoff(-time.Second, time.Second)}, "Backoff(-1s, 1s)"},
			{"k", []LockOption{Backoff(0, 1<<62)}, "Backoff(0s, "},
			{"k", []LockOption{MaxHold(0)}, "MaxHold(0s)"},
			{"k", []LockOption{Progress(0)}, "Progress(0s)"},
			{"k", []LockOption{MinHold(-1)}, "MinHold(-1ns)"},
			{"k", []LockOption{Slots(0)}, "Slots(0)"},
			{"k", []LockOption{Slots(-3)}, "Slots(-3)"},
			{"k", []LockOption{Slots(1 << 30)}, "Slots("},
			{"k", []LockOption{SlotsOf(3, 2)}, "SlotsOf(3, 2)"},
			{"k", []LockOption{SlotsOf(0, 2)}, "SlotsOf(0, 2)"},
			{"k", []LockOption{SlotsOf(1, MaxSlots+1)}, "SlotsOf(1, 1048577)"},
			{"k", []LockOption{SlotsOf(1, 2), Shared()}, "exclude"},
			{"k", []LockOption{Slots(2), Shared()}, "exclude"},
			{"k", []LockOption{Exclusive(), Shared()}, "exclude"},
			{"k", []LockOption{Slots(2), Exclusive()}, "exclude"},
			{"k", []LockOption{Exclusive(), Reenter()}, "exclude"},
			{"k", []LockOption{Note("\xff")}, "Note"},
			{"k", []LockOption{Note(strings.Repeat("n", 1025))}, "Note"},
		}
		for _, c := range cases {
			_, lockErr := lk.Lock(b.Context(), c.key, c.opts...)
			doErr := lk.Do(b.Context(), c.key, noop, c.opts...)
			_, allErr := lk.LockAll(b.Context(), []string{c.key}, c.opts...)
			for _, err := range []error{lockErr, doErr, allErr} {
				var e *Error
				if !errors.As(err, &e) || e.Key != c.key || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					b.Errorf("key %.20q: error %v, want one that names the key and says %q", c.key, err, c.want)
				}
				if !errors.Is(err, ErrInvalid) || errors.Is(err, ErrInvalidKey) != (c.key != "k") {
					b.Errorf("key %.20q: error %v matches ErrInvalid: %v, ErrInvalidKey: %v", c.key, err, errors.Is(err, ErrInvalid), errors.Is(err, ErrInvalidKey))
				}
			}
		}
		if c := b.store.seen(); c.acquire != 0 {
			b.Errorf("bad input reached the store %d times", c.acquire)
		}
		if _, err := lk.TryLock(b.Context(), "k", Wait(time.Second)); !errors.Is(err, ErrInvalid) || errors.Is(err, ErrHeld) {
			b.Errorf("TryLock with Wait: %v", err)
		}
		for _, keys := range [][]string{nil, manyKeys(65)} {
			if _, err := lk.LockAll(b.Context(), keys); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "from 1 to 64") {
				b.Errorf("LockAll of %d keys: %v", len(keys), err)
			}
		}
	})
}

func manyKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	return keys
}

func TestBadOptions(t *testing.T) {
	simulate(t, func(b *bench) {
		for want, opts := range map[string]*Options{
			"Options.TTL":    {TTL: time.Millisecond},
			"Options.Poll":   {Poll: time.Hour},
			"Options.Owner":  {Owner: "\xff"},
			"Options.Prefix": {Prefix: strings.Repeat("p", 512)},
		} {
			if _, err := New(b.store, opts); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
				b.Errorf("New with %+v: %v, want an error about %s", opts, err, want)
			}
			if _, err := Open(b.Context(), "mem://", opts); err == nil || !strings.Contains(err.Error(), want) {
				b.Errorf("Open with %+v: %v, want an error about %s", opts, err, want)
			}
		}
		if _, err := New(nil, nil); !errors.Is(err, ErrInvalid) {
			b.Errorf("New without a store: %v", err)
		}
	})
}

func TestOddKeys(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		keys := []string{"..", "/", "a/b", "a\x00b", "a\nb", "🔒", "Job", "job", "job ", "%2e", strings.Repeat("k", 512)}
		var locks []*Lock
		for _, key := range keys {
			locks = append(locks, b.lock(lk, key))
			if _, err := other.TryLock(b.Context(), key); !errors.Is(err, ErrHeld) {
				b.Errorf("key %.20q: %v, want ErrHeld", key, err)
			}
		}
		for _, l := range locks {
			b.unlock(l)
		}
	})
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	for url, want := range map[string]string{
		"nosuch://u:secret@host/": `"nosuch"`,
		"/var/lock":               "no scheme",
		"mem://?speed=9":          `"speed"`,
		"mem://%zz:secret@x":      "does not parse",
	} {
		_, err := Open(t.Context(), url, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v, want an error with %s", url, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q) shows the password: %v", url, err)
		}
	}
}

// Owner and Note may be long. The text of a HeldError shows the beginning of each.
func TestHeldErrorIsCut(t *testing.T) {
	long := strings.Repeat("x", 1024)
	text := (&HeldError{Owner: long, Note: long}).Error()
	if len(text) > 400 || strings.Count(text, `"...`) != 2 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
