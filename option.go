package holdfast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/driver"
)

// Bounds of what callers may ask for.
const (
	MinTTL   = 100 * time.Millisecond
	MaxTTL   = 24 * time.Hour
	MaxSlots = 1 << 20
	MaxKeys  = 64 // of one LockAll

	maxDuration = 366 * 24 * time.Hour
)

// Options are the settings of a [Locker]. The zero value is ready to use.
type Options struct {
	// Prefix is put before every key, so that several applications can share
	// one store. Prefix and key together take up to 512 bytes.
	Prefix string

	// TTL is how long a holder that has fallen silent keeps a lock, from
	// 100ms to 24h; some stores need more than 100ms. Default 15s. It is not
	// a limit for the work done under a lock: locks are renewed.
	TTL time.Duration

	// Poll is the longest sleep between two tries on a store that cannot
	// wake waiters, from 1ms to 1m. Default 500ms.
	Poll time.Duration

	// Owner names this process to people. Default user@host:pid.
	Owner string

	// Logger is told what no call can return. Default: nothing is logged.
	Logger *slog.Logger

	// Trace observes locks. Default: nobody does.
	Trace *Trace
}

// resolve fills in the defaults. A bad option is reported by the first call,
// because New cannot fail.
func (o *Options) resolve() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	var errs []error
	if r.TTL == 0 {
		r.TTL = 15 * time.Second
	}
	errs = append(errs, within("Options.TTL", r.TTL, MinTTL, MaxTTL))
	if r.Poll == 0 {
		r.Poll = 500 * time.Millisecond
	}
	errs = append(errs, within("Options.Poll", r.Poll, time.Millisecond, time.Minute))
	if r.Owner == "" {
		r.Owner = defaultOwner()
	}
	errs = append(errs, checkText("Options.Owner", r.Owner))
	if len(r.Prefix) >= driver.MaxKey || !utf8.ValidString(r.Prefix) {
		errs = append(errs, fmt.Errorf("Options.Prefix %.40q must be UTF-8 of less than %d bytes", r.Prefix, driver.MaxKey))
	}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	if r.Trace == nil {
		r.Trace = &Trace{}
	}
	return r, invalid(ErrInvalid, errors.Join(errs...))
}

func defaultOwner() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	owner := fmt.Sprintf("%s@%s:%d", name, host, os.Getpid())
	return strings.ToValidUTF8(owner[:min(len(owner), driver.MaxText)], "")
}

// A LockOption changes one call.
type LockOption struct {
	set func(settings) settings
}

// settings are what the options of one call add up to.
type settings struct {
	terms
	term
	wait    time.Duration
	limited bool // wait is a limit
	tries   int
	every   time.Duration
	fenced  bool
	reenter bool
	kind    string // Shared, Slots, Exclusive, or "" for exclusive too
	errs    []error
}

// terms are what two locks must share for one claim to serve both in turn.
type terms struct {
	weight, limit int64
	ttl           time.Duration
	noRenew       bool
	note          string
}

// A term is how long a lock may and must be held.
type term struct {
	maxHold time.Duration
	atLeast time.Duration
	ctx     context.Context // for a Trace that sees the lock end; else nil
}

func (t terms) exclusive() bool { return t.weight == driver.MaxWeight }

// Shared asks for a lock that any number of other Shared locks may hold at the
// same time, and no exclusive one. A waiting exclusive lock goes before readers
// that come after it.
func Shared() LockOption {
	return option(func(s *settings) { s.is("Shared", driver.MaxWeight) })
}

// Slots asks for one of n slots of the key: a semaphore. n is 1 to 1,048,576.
// Callers that name different n each keep their own limit: a lock is granted if
// the slots in use, plus its own, do not pass its n.
func Slots(n int) LockOption {
	return option(func(s *settings) {
		if n < 1 || n > MaxSlots {
			s.fail(fmt.Errorf("Slots(%d) must be from 1 to %d", n, MaxSlots))
		}
		s.is("Slots", int64(n))
	})
}

// Exclusive says what a lock is without [Shared] and [Slots]: at most one holds
// the key. It is for those who pass on the options of others: with it, Shared,
// Slots and [Reenter] are refused as bad input, because with each of them the key
// could serve two at a time.
func Exclusive() LockOption {
	return option(func(s *settings) { s.is("Exclusive", driver.MaxWeight) })
}

// Weight makes a lock take w of the key's Slots, from 1 to their number,
// instead of 1.
func Weight(w int) LockOption {
	return option(func(s *settings) {
		if w < 1 {
			s.fail(fmt.Errorf("Weight(%d) must be at least 1", w))
		}
		s.weight = int64(w)
	})
}

// TTL sets how long this lock outlives a holder that has fallen silent, from
// 100ms to 24h, in place of [Options].TTL.
func TTL(d time.Duration) LockOption {
	return option(func(s *settings) { s.ttl = d })
}

// Wait limits how long Lock waits, besides its context. After that it returns
// an error that matches [ErrHeld]. Wait(0) is TryLock.
func Wait(d time.Duration) LockOption {
	return option(func(s *settings) {
		if d < 0 || d > maxDuration {
			s.fail(fmt.Errorf("Wait(%v) must be from 0 to %v", d, maxDuration))
		}
		s.wait, s.limited = d, true
	})
}

// Retry makes Lock try n times in all, sleeping for every between two tries,
// instead of standing in line. n is 1 to 1,000,000.
func Retry(n int, every time.Duration) LockOption {
	return option(func(s *settings) {
		if n < 1 || n > 1_000_000 || every < 0 || every > maxDuration {
			s.fail(fmt.Errorf("Retry(%d, %v) must have from 1 to 1000000 tries, and no negative or absurd sleep", n, every))
		}
		s.tries, s.every = n, every
	})
}

// Fenced refuses, with [ErrNotFenced], a store that has no fencing tokens.
func Fenced() LockOption {
	return option(func(s *settings) { s.fenced = true })
}

// NoRenew leaves the lock to its TTL: it is lost that long after it was taken.
func NoRenew() LockOption {
	return option(func(s *settings) { s.noRenew = true })
}

// MaxHold loses the lock once it has been held for d, whatever its holder does:
// a guard against work that hangs while the process that renews is healthy. The
// key is free at most one TTL later, or as soon as the holder unlocks.
func MaxHold(d time.Duration) LockOption {
	return option(func(s *settings) {
		s.positive("MaxHold", d)
		s.maxHold = d
	})
}

// AtLeast keeps the key taken for d from when it was locked, though the lock is
// unlocked, or its process ends after that, before: so that a quick job on a
// schedule is not run again by the next node whose clock is a little late. A
// lock that is lost keeps the key no longer than its TTL.
func AtLeast(d time.Duration) LockOption {
	return option(func(s *settings) {
		s.positive("AtLeast", d)
		s.atLeast = d
	})
}

// Reenter lets a call enter a lock of the same Locker and key that its context
// carries (see [Lock.Context]). The lock is counted, keeps its token, and ends
// with the last Unlock. A Shared lock may be entered under any other; to enter
// a Shared lock as an exclusive one is refused with [ErrDeadlock].
func Reenter() LockOption {
	return option(func(s *settings) { s.reenter = true })
}

// Note tells people what the lock is for, in up to 1,024 bytes of UTF-8. It is
// shown to those who are refused and by Holders.
func Note(text string) LockOption {
	return option(func(s *settings) {
		s.fail(checkText("Note", text))
		s.note = text
	})
}

func option(set func(*settings)) LockOption {
	return LockOption{func(s settings) settings { set(&s); return s }}
}

func (s *settings) is(kind string, limit int64) {
	if s.kind != "" && s.kind != kind {
		s.fail(fmt.Errorf("%s and %s exclude each other", s.kind, kind))
	}
	s.kind, s.limit = kind, limit
}

func (s *settings) positive(name string, d time.Duration) {
	if d <= 0 || d > maxDuration {
		s.fail(fmt.Errorf("%s(%v) must be above 0 and at most %v", name, d, maxDuration))
	}
}

func (s *settings) fail(err error) {
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

// settings adds up the options of one call.
func (lk *Locker) settings(opts []LockOption) (settings, error) {
	s := settings{terms: terms{ttl: lk.opts.TTL}}
	for _, o := range opts {
		if o.set != nil {
			s = o.set(s)
		}
	}
	s.weigh()
	if s.ttl != lk.opts.TTL {
		s.fail(within("TTL", s.ttl, MinTTL, MaxTTL))
	}
	if s.reenter && s.kind == "Exclusive" {
		s.fail(errors.New("Reenter and Exclusive exclude each other"))
	}
	if s.tries > 0 && s.limited {
		s.fail(errors.New("Retry and Wait exclude each other"))
	}
	if s.errs == nil {
		return s, lk.bad
	}
	return s, invalid(ErrInvalid, errors.Join(append(s.errs, lk.bad)...))
}

// weigh turns the kind of lock into the numbers of the one rule of package
// driver.
func (s *settings) weigh() {
	if s.weight != 0 && s.kind != "Slots" {
		s.fail(errors.New("Weight needs Slots"))
	}
	switch s.kind {
	case "Shared":
		s.weight = 1
	case "Slots":
		s.weight = max(s.weight, 1)
		if s.weight > s.limit && s.limit > 0 {
			s.fail(fmt.Errorf("Weight(%d) is more than Slots(%d)", s.weight, s.limit))
		}
	default:
		s.weight, s.limit = driver.MaxWeight, driver.MaxWeight
	}
}

// storedKey checks a caller's key and puts the prefix before it.
func (lk *Locker) storedKey(key string) (string, error) {
	if err := driver.CheckKey(key); err != nil {
		return "", invalid(ErrKey, err)
	}
	if n := len(lk.opts.Prefix) + len(key); n > driver.MaxKey {
		return "", invalid(ErrKey, fmt.Errorf("the key has %d bytes with its prefix; it must have at most %d", n, driver.MaxKey))
	}
	return lk.opts.Prefix + key, nil
}

func within(name string, d, low, high time.Duration) error {
	if d < low || d > high {
		return fmt.Errorf("%s is %v; it must be from %v to %v", name, d, low, high)
	}
	return nil
}

func checkText(name, text string) error {
	if len(text) > driver.MaxText || !utf8.ValidString(text) {
		return fmt.Errorf("%s %.40q must be UTF-8 of at most %d bytes", name, text, driver.MaxText)
	}
	return nil
}
