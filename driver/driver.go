// Package driver is the contract between Holdfast's core and a store.
//
// A store keeps claims on keys. The core decides when to ask, wait, renew and
// give up; the store decides, atomically and by its own clock, whether a claim
// fits beside those that live. Applications use package holdfast; this package
// is for those who write a store. Package drivertest holds the suite that
// every store passes, and docs/drivers.md the steps to write one.
//
// # The one rule
//
// A claim is granted if the weights of the live claims on its key, plus its
// own, do not pass its limit, and no live claim waits in line before it. The
// rest follows from the numbers: an exclusive claim weighs [MaxWeight] of
// [MaxWeight], a reader 1 of [MaxWeight], a slot of a semaphore 1 of n.
//
// # Answers
//
// Refusal is not an error: it is the zero [Grant]. Errors are for calls whose
// outcome the store does not know, and are returned as the client library made
// them; the core wraps them once. Three errors are certain: [ErrLost] says that
// a claim is gone, [ErrInvalid] that this store can never keep such a claim, and
// [ErrUnwritten] that an Acquire has changed nothing.
//
// Every call ends within the context it is given. The core bounds that context
// by the smaller of a sixth of the TTL and one second.
package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Bounds that the core keeps for every store.
const (
	MaxWeight = 1 << 40 // the weight and the limit of an exclusive claim
	MaxKey    = 512     // bytes of a key, prefix included
	MaxText   = 1024    // bytes of an owner or a note
	MaxSpan   = 256     // fencing tokens that one grant may carry

	// MaxLead is how far, in microseconds, the token that a claim asks for may
	// be ahead of the store's clock and tokens. One request from a machine
	// whose clock is years ahead would otherwise use them up for good.
	MaxLead = 24 * 60 * 60 * 1_000_000
)

// Certain answers. Everything else that Renew and Release return means that
// the outcome is unknown.
var (
	// ErrLost says that a claim is certainly gone: it ran out, was released,
	// or was taken away. No later call brings it back.
	ErrLost = errors.New("claim is gone")

	// ErrBroken is the ErrLost of a claim that Inspector.Break ended.
	ErrBroken = fmt.Errorf("%w: broken by an operator", ErrLost)

	// ErrInvalid says that this store can never keep the claim as it is, for
	// example because its TTL is too short, or none before somebody changes the
	// engine. Wrap it with what would be right. The core does not try again.
	ErrInvalid = errors.New("store cannot do this")

	// ErrUnwritten says that nothing of an Acquire that has failed can have changed
	// what the store knows of the claim, nor will. Wrap the reason with it. A claim
	// of which the store knows nothing need not be released.
	ErrUnwritten = errors.New("nothing was written")
)

// A Claim says who wants how much of a key.
type Claim struct {
	Key string // 1 to MaxKey bytes of UTF-8
	ID  string // made by the core, never used again; the owner's secret

	Weight int64         // 1 to Limit
	Limit  int64         // 1 to MaxWeight
	TTL    time.Duration // how long the claim stands without a renewal

	// Wait, for Acquire: the caller will ask again until it is granted or
	// released. A store with a queue keeps a place for the claim, for as long
	// as [Claim.Alive] after the last time it asked.
	Wait bool

	// Late, for Release: an Acquire of this id may still be on its way. The
	// store refuses it if it arrives within the next ten seconds. It is set in no
	// other call.
	Late bool

	// Leave, for Renew: this renewal is the last. The claim stands for TTL
	// from now, no shorter and, whatever is renewed or asked for after it, no
	// longer, though its client may end before. TTL may be less than the shortest
	// that the store takes otherwise.
	Leave bool

	// Span, for Acquire: how many fencing tokens the caller could use for
	// hand-offs of its own, 1 to MaxSpan.
	Span int

	// Fence asks for a token that is at least this; 0 for whatever comes. For
	// Acquire it is about a grant that this call makes, not one that stands
	// already or comes later in line, nor a reader that joins others. For
	// Renew it raises the claim's token to this if it is smaller, and the key
	// gives no token up to that again, span included; a reader that joins
	// others gets the highest to which one of them was raised. A store that
	// cannot do either, or whose clock is more than [MaxLead] behind, says
	// ErrInvalid.
	Fence uint64

	Owner, Note string // for people; never compared
}

// Exclusive reports whether c tolerates no other claim.
func (c Claim) Exclusive() bool { return c.Limit == MaxWeight && c.Weight == MaxWeight }

// Shared reports whether c is a reader: one of very many.
func (c Claim) Shared() bool { return c.Limit == MaxWeight && c.Weight < MaxWeight }

// Alive is how long a waiting claim keeps its place without asking again, and
// how long a claim that was granted while it waited stands before its owner
// has confirmed it by a renewal. The core asks at least three times as often.
func (c Claim) Alive() time.Duration { return min(c.TTL, 3*time.Second) }

// A Grant is a store's answer to a claim. The zero value says no.
type Grant struct {
	OK bool

	// Fence is the fencing token: larger than every token that the key has
	// given before, except that all readers of one read phase share one. Whether
	// a slot that is let in beside readers ends their phase, is up to the store.
	// 0 means that the store has no tokens.
	Fence uint64

	// Span says that the tokens Fence to Fence+Span-1 belong to this grant.
	// 0 means 1; a store may give fewer than the claim asked for.
	Span int

	// TTL is how long the claim stands, counted from when the request was
	// sent; 0 means until it is released or the store says it is lost.
	TTL time.Duration

	// Retry and Holder explain a refusal as far as the store knows: when the
	// claim in the way runs out, and whose it is.
	Retry  time.Duration
	Holder Holder

	// Pause asks, in a refusal, for about so long a pause before the first time
	// that the caller asks again without a wake-up. Later pauses are longer, and
	// none is longer than the caller likes. 0 where asking is cheap, and where it
	// is somebody's turn who should find out soon. A claim that moves up in line
	// is asked for a shorter one, and then asks sooner.
	Pause time.Duration

	// Floor is the highest token that the store had given, for this key or any,
	// when it refused. A grant that is pushed with none above it is from before,
	// and may have run out. 0 if the store pushes no grants.
	Floor uint64
}

// A Holder is what people may know of a claim. All fields are hints: the claim
// may have ended since.
type Holder struct {
	ID      string        // public: PublicID of the claim's id
	Owner   string        // as the claim said
	Note    string        // as the claim said
	Fence   uint64        // 0 while Waiting
	Since   time.Time     // when it was granted, or began to wait, by the store's clock
	Left    time.Duration // until it runs out unless renewed; 0 if unknown
	Weight  int64
	Limit   int64
	Waiting bool // in line, in order, after those that hold
}

// PublicID is the name under which people see the claim with this id. It
// cannot be turned back.
func PublicID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// A Store keeps claims. All methods may be called at the same time.
type Store interface {
	// Acquire asks for a claim, once, and does not wait for it. It is
	// idempotent: asking again with the id of a live claim grants it again,
	// with the same fence and a fresh TTL.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Renew lets each claim stand for its TTL from now and returns one error
	// per claim, in order: nil if it is kept, ErrLost if it is certainly gone,
	// anything else if that is unknown. A nil slice says that all are kept. It
	// never creates, revives or queues a claim.
	Renew(ctx context.Context, cs []Claim) []error

	// Release ends claims, whether held or waiting, and wakes those in line
	// behind them. One error per claim, in order: nil if it ended now, ErrLost
	// if there was nothing to end, anything else if that is unknown. A nil
	// slice says that all ended.
	Release(ctx context.Context, cs []Claim) []error

	// Close gives back what the store holds of its own. It leaves claims alone
	// unless they cannot outlive their client.
	Close() error
}

// A Watcher is a Store that can tell a waiting claim when to ask again.
type Watcher interface {
	// Watch calls wake, from any goroutine, whenever asking again for c may
	// pay. wake does not block. Waking too often is harmless; what would have
	// woken the claim before Watch returned may be missed, so the caller asks
	// once more after it.
	//
	// wake(Grant{}) means: ask again. A Grant that is OK means that the claim
	// has been granted, unless its token is not above the Floor of the last
	// refusal. Its TTL counts from the sending of the last Acquire of this claim
	// that the store answered, because the message may be late, and the core
	// confirms it by Renew.
	//
	// The watch outlives ctx, which bounds the call only. stop ends it; wake
	// may be running while stop does.
	Watch(ctx context.Context, c Claim, wake func(Grant)) (stop func(), err error)
}

// A Notifier is a Store that learns by itself that claims have ended, before
// their owner would at the next renewal.
type Notifier interface {
	// Notify calls lost, from any goroutine, for each claim of this Store, held
	// or waiting, that it learns has ended without a Release. The core never
	// asks with its id again. lost does not block. err matches ErrLost and
	// says why. stop ends the calls.
	Notify(lost func(key, id string, err error)) (stop func())
}

// An Inspector is a Store that can show its claims to people.
type Inspector interface {
	// Holders returns the claims on a key: those that hold, then those in line
	// as far as the store knows them. A claim's own id is never among them.
	Holders(ctx context.Context, key string) ([]Holder, error)

	// Keys yields the keys with live claims that begin with prefix, in no
	// order. An error ends the sequence.
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]

	// Break ends the claim that Holders calls id, held or in line, at once, and
	// lets the next in line in. The store refuses its id for ten seconds, so a
	// Notifier tells its owner of it, in line if that watches. ErrLost if there
	// is none such.
	Break(ctx context.Context, key, id string) error
}

// A Checker is a Store that can tell how its engine is set up.
type Checker interface {
	// Check looks for settings of the engine that weaken what the store
	// promises, and returns a sentence for people about each: what is set, what
	// may happen, and what would be right.
	//
	// An error that matches ErrInvalid says that the store can keep no claim at
	// all before somebody changes the engine, for example because a Creator has
	// not been created; it says what to do. Any other error says that Check
	// could not look, not that anything is wrong.
	Check(ctx context.Context) (warnings []string, err error)
}

// A Creator is a Store whose engine has to be prepared once, before its first
// claim, for example by making a table. Check tells if that has not been done.
type Creator interface {
	Checker

	// Create prepares the engine. What is there already stays, claims included:
	// to create twice, or by many at once, is to create once. It may need rights
	// that claims do not need.
	Create(ctx context.Context) error

	// Schema returns what Create does, as statements of the engine without
	// their end marks, for whoever would rather read and run them by hand.
	Schema() []string
}

// An Ager is a Store whose engine may come back from a restart without the
// claims that it had granted.
type Ager interface {
	// Age is how long the engine has run without such a restart, as of some
	// moment since the last answer that this Store got from it. It does I/O
	// only if the engine may have restarted since the last look.
	Age(ctx context.Context) (time.Duration, error)
}
