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
	"github.com/holdfast-go/holdfast/internal/caller"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// Bounds of keys and options.
const (
	MinTTL   = 100 * time.Millisecond
	MaxTTL   = 24 * time.Hour
	MaxSlots = 1 << 20
	MaxGroup = 64 // of one LockAll

	maxDuration = 366 * 24 * time.Hour
)

// Options are the settings of a [Locker]. The zero value is ready to use.
type Options struct {
	// Prefix is put before every key, so that several applications can share one store.
	// Prefix and key together take up to 512 bytes.
	Prefix string

	// TTL is how long a silent holder keeps a lock, from 100ms to 24h; some stores need
	// more than 100ms. Default 15s. TTL does not limit the work under a lock: the Locker
	// renews the lock.
	TTL time.Duration

	// Poll is the longest sleep between two tries if the store cannot wake waiters, from
	// 1ms to 1m. Default 500ms. A store of MySQL or MariaDB opened by URL does not use
	// Poll, see package mysqllock.
	Poll time.Duration

	// Owner names the process to people. Default user@host:pid.
	Owner string

	// Logger receives events that no call can return: for example a lost lock, a lock
	// dropped without Unlock, or a setting of the store that weakens its promises. nil
	// means [slog.Default], from Warn on. A Logger with [slog.DiscardHandler] is silent.
	Logger *slog.Logger

	// Trace observes locks. Default: none.
	Trace *Trace
}

// resolve fills in the defaults.
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

// settings are the combined options of one call.
type settings struct {
	engine.Request
	reenter bool
	kind    string // Shared, Slots, Exclusive, or "" for exclusive too
	errs    []error
}

// Shared requests a read lock: any number of Shared locks may hold the key at the same
// time, but no exclusive lock beside them. If the store queues waiters, a waiting
// exclusive lock goes before later readers.
//
// Memcached has no queue: there, readers back off now and then while others wait. So a
// writer starves only if readers hold their locks for long (a quarter of a second or more).
func Shared() LockOption {
	return option(func(s *settings) { s.is("Shared", 1, driver.MaxWeight) })
}

// Slots requests one of n slots of the key: a semaphore. n is 1 to 1,048,576. If callers
// name different n, each keeps its own limit: a lock is granted if the slots in use, plus
// its own, do not exceed its n.
func Slots(n int) LockOption {
	return option(func(s *settings) {
		if n < 1 || n > MaxSlots {
			s.fail(fmt.Errorf("Slots(%d) must be from 1 to %d", n, MaxSlots))
		}
		s.is("Slots", 1, int64(n))
	})
}

// SlotsOf is [Slots] for a lock that takes w of the n slots instead of one. w is from 1 to n.
func SlotsOf(w, n int) LockOption {
	return option(func(s *settings) {
		if n < 1 || n > MaxSlots || w < 1 || w > n {
			s.fail(fmt.Errorf("SlotsOf(%d, %d) must take from 1 to all of the slots, of which there are from 1 to %d", w, n, MaxSlots))
		}
		s.is("Slots", int64(w), int64(n))
	})
}

// Exclusive requests an exclusive lock, as is the default without [Shared] and [Slots]: at
// most one holder per key. Use Exclusive if you pass on the options of a caller: then
// Shared, Slots and [Reenter] are rejected as bad input, because with each of them the key
// could serve two holders at a time.
func Exclusive() LockOption {
	return option(func(s *settings) { s.is("Exclusive", driver.MaxWeight, driver.MaxWeight) })
}

// TTL sets how long the lock outlives a silent holder, from 100ms to 24h, in place of
// [Options].TTL.
func TTL(d time.Duration) LockOption {
	return option(func(s *settings) { s.TTL = d })
}

// Wait limits how long Lock waits, besides the context. After d, Lock returns an error
// that matches [ErrHeld]. Wait(0) is TryLock.
func Wait(d time.Duration) LockOption {
	return option(func(s *settings) {
		if d < 0 || d > maxDuration {
			s.fail(fmt.Errorf("Wait(%v) must be from 0 to %v", d, maxDuration))
		}
		s.Wait, s.Limited = d, true
	})
}

// Backoff makes Lock retry, as repeated calls of TryLock do, until ctx or [Wait] ends the
// call. Between two tries Lock sleeps for a random time from least to most, so that callers
// that began together come apart. least is 0 or more, most 1ms or more.
//
// Without Backoff, Lock waits in the queue of the store, and is notified, as far as the store
// can do that. Backoff sends fewer requests if a key is held for long, but has no FIFO order:
// every waiter in a queue acquires the lock first.
func Backoff(least, most time.Duration) LockOption {
	return option(func(s *settings) {
		if least < 0 || least > most || most < time.Millisecond || most > maxDuration {
			s.fail(fmt.Errorf("Backoff(%v, %v) must have sleeps from 0 to %v, the least first, the most 1ms at least", least, most, maxDuration))
		}
		s.Least, s.Most = least, most
	})
}

// Fenced makes the call fail with [ErrNotFenced] if the store has no fencing tokens.
func Fenced() LockOption {
	return option(func(s *settings) { s.Fenced = true })
}

// NoRenew turns off renewals: the lock is lost one TTL after it was acquired.
func NoRenew() LockOption {
	return option(func(s *settings) { s.NoRenew = true })
}

// MaxHold ends the lock as lost once it has been held for d, whatever the holder does. It
// guards against work that hangs while its process still renews. The key is free at most
// one TTL later, or as soon as the holder unlocks.
func MaxHold(d time.Duration) LockOption {
	return option(func(s *settings) {
		s.positive("MaxHold", d)
		s.MaxHold = d
	})
}

// Progress ends the lock as lost unless the holder reports progress in time: within d of
// the acquire, and within d of each call of [Lock.Progress]. It guards against work that
// hangs, as [MaxHold] does, where nobody can say how long the whole work may take. With
// [Reenter], the limit of the first acquire stays.
func Progress(d time.Duration) LockOption {
	return option(func(s *settings) {
		s.positive("Progress", d)
		s.Progress = d
	})
}

// MinHold keeps the key locked for at least d after the lock was acquired, even if the lock
// is released before d is over, and even if the process exits after that release. So a
// quick scheduled job is not run again by the next node, whose clock is a little late. A
// lost lock keeps the key no longer than its TTL.
func MinHold(d time.Duration) LockOption {
	return option(func(s *settings) {
		s.positive("MinHold", d)
		s.MinHold = d
	})
}

// Reenter makes locks re-entrant: a call may enter a lock of the same Locker and key that
// its context carries (see [Lock.Context]). The lock counts the entries, keeps its token,
// and ends with the last Unlock. A Shared lock may be entered under a lock of any kind.
// Entering a Shared lock as an exclusive lock fails with [ErrDeadlock].
func Reenter() LockOption {
	return option(func(s *settings) { s.reenter = true })
}

// Note tells people what the lock is for, in up to 1,024 bytes of UTF-8. A [HeldError] and
// [Locker.Holders] show the note.
func Note(text string) LockOption {
	return option(func(s *settings) {
		s.fail(checkText("Note", text))
		s.Note = text
	})
}

func option(set func(*settings)) LockOption {
	return LockOption{func(s settings) settings { set(&s); return s }}
}

// is sets the kind of lock, and its numbers in the one rule of package driver.
func (s *settings) is(kind string, weight, limit int64) {
	if s.kind != "" && s.kind != kind {
		s.fail(fmt.Errorf("%s and %s exclude each other", s.kind, kind))
	}
	s.kind, s.Weight, s.Limit = kind, weight, limit
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

// settings combines the options of one call.
func (lk *Locker) settings(opts []LockOption) (settings, error) {
	var s settings
	s.TTL, s.Weight, s.Limit = lk.opts.TTL, driver.MaxWeight, driver.MaxWeight
	for _, o := range opts {
		if o.set != nil {
			s = o.set(s)
		}
	}
	if s.TTL != lk.opts.TTL {
		s.fail(within("TTL", s.TTL, MinTTL, MaxTTL))
	}
	if s.reenter && s.kind == "Exclusive" {
		s.fail(errors.New("Reenter and Exclusive exclude each other"))
	}
	return s, invalid(ErrInvalid, errors.Join(s.errs...))
}

// storedKey checks a caller's key and adds the prefix.
func (lk *Locker) storedKey(key string) (string, error) {
	if err := caller.CheckKey(key); err != nil {
		return "", invalid(ErrInvalidKey, err)
	}
	if n := len(lk.opts.Prefix) + len(key); n > driver.MaxKey {
		return "", invalid(ErrInvalidKey, fmt.Errorf("the key has %d bytes with its prefix; it must have at most %d", n, driver.MaxKey))
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

// log logs events that no call can return. Without a Logger, events from Warn on go to
// the default logger of the moment, because programs set the default late.
func (lk *Locker) log(level slog.Level, message string, args ...any) {
	to := lk.opts.Logger
	switch {
	case to == nil && level < slog.LevelWarn:
		return
	case to == nil:
		to = slog.Default()
	}
	to.Log(context.Background(), level, message, args...)
}
