// Package driver is the contract between Holdfast's core and a store.
//
// A store keeps claims on keys. The core decides when to ask, wait, renew and give up.
// The store decides, atomically and by its own clock, whether a claim fits beside the
// live claims.
//
// Applications use package holdfast; package driver is for authors of stores. Package
// drivertest is the test suite for every store. docs/drivers.md lists the steps to write
// a store.
//
// # The one rule
//
// A claim is granted if both conditions hold:
//
//   - The weights of the live claims on its key, plus its own weight, do not exceed its
//     limit.
//   - No live claim waits before it in the queue.
//
// The rest follows from the numbers: an exclusive claim weighs [MaxWeight] of
// [MaxWeight], a reader 1 of [MaxWeight], a slot of a semaphore 1 of n. The upgrade of a
// reader weighs MaxWeight-1 of MaxWeight, so it fits beside one reader and nothing else.
//
// # Answers
//
// A refusal is not an error: it is the zero [Grant]. Errors are for calls whose outcome
// the store does not know. A store returns the errors of its client library unchanged; the
// core wraps each error once. Three errors are certain:
//
//   - [ErrLost]: the claim is gone.
//   - [ErrInvalid]: the store can never keep such a claim.
//   - [ErrUnwritten]: an Acquire has changed nothing.
//
// Every call ends within its context, whether the context is cancelled or reaches its
// deadline, even if the server never answers. The core bounds the context by the smaller
// of a sixth of the TTL and one second.
//
// If a call has failed to reach the server and ends with its context, its error also says
// why it failed. If a call ends before its context, for example by a limit of the client
// library, its error does not match the error of a context.
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

	// MaxLead is how far, in microseconds, a requested token may be ahead of the store's
	// clock and tokens. Without MaxLead, a request from a machine with a clock years ahead
	// would use up the tokens for good.
	MaxLead = 24 * 60 * 60 * 1_000_000
)

// Certain answers. After any other error the outcome of the call is unknown.
var (
	// ErrLost says that a claim is certainly gone: the claim expired, was released, or
	// was taken away. No later call brings the claim back.
	ErrLost = errors.New("claim is gone")

	// ErrBroken is the ErrLost of a claim that Inspector.Break ended.
	ErrBroken = fmt.Errorf("%w: broken by an operator", ErrLost)

	// ErrInvalid says that the store can never keep the claim as requested, for example
	// because the TTL is too short, or can keep no claim at all before somebody changes the
	// engine. Wrap ErrInvalid with a text about what would be right. The core does not
	// retry.
	ErrInvalid = errors.New("store cannot do this")

	// ErrUnwritten says that a failed Acquire cannot have changed what the store knows of
	// the claim, and never will. Wrap the reason with ErrUnwritten. A claim unknown to
	// the store need not be released.
	ErrUnwritten = errors.New("nothing was written")
)

// A Claim says who wants how much of a key.
type Claim struct {
	Key string // 1 to MaxKey bytes of UTF-8
	ID  string // made by the core, never used again; the owner's secret

	Weight int64         // 1 to Limit
	Limit  int64         // 1 to MaxWeight
	TTL    time.Duration // how long the claim stands without a renewal

	Owner, Note string // for people; never compared
}

// An Ask is a request for a claim.
type Ask struct {
	Claim

	// Wait says that the caller will ask again until the claim is granted or released. A
	// store with a queue keeps a place for the claim, for [Claim.Alive] or Grant.Kept after
	// each request. A store that is short of time may refuse a claim before the claim has a
	// place; the next request gives it one.
	Wait bool

	// Span is how many fencing tokens the caller could use for its own hand-overs, 1 to
	// MaxSpan.
	Span int

	// Fence is the least token for a grant that this call makes; 0 accepts every token.
	// Fence does not apply to a grant that stands already or comes later in the queue, nor
	// to a reader that joins other readers.
	//
	// A store that cannot do that, or whose clock is more than [MaxLead] behind, returns
	// ErrInvalid.
	Fence uint64
}

// A Renewal lets a claim stand for its TTL from now.
type Renewal struct {
	Claim

	// Leave says that the renewal is the last. The claim stands for TTL from now: no
	// shorter, even if its client ends before, and no longer, even after later renewals or
	// requests. TTL may be less than the store's usual minimum.
	Leave bool

	// Fence raises a smaller token of the claim to Fence. From then on the key gives no
	// token up to Fence, span included. A reader that joins other readers receives the
	// highest token to which one of the readers was raised. So does a reader that asks
	// again, and the reader keeps that token. 0 raises nothing.
	//
	// A store that cannot do that, or whose clock is more than [MaxLead] behind, returns
	// ErrInvalid.
	Fence uint64
}

// A Release ends a claim.
type Release struct {
	Claim

	// Late says that an Acquire with the same id may still arrive. The store refuses the
	// Acquire if it arrives within the next ten seconds.
	Late bool
}

// Exclusive reports whether c excludes every other claim.
func (c Claim) Exclusive() bool { return c.Limit == MaxWeight && c.Weight == MaxWeight }

// Shared reports whether c is a reader: of the whole key, a share that leaves room for other
// readers.
func (c Claim) Shared() bool { return c.Limit == MaxWeight && c.Weight <= MaxWeight/2 }

// Alive is how long a waiting claim keeps its place without a new request, and how long a
// claim granted while waiting stands unless the owner confirms the claim by a renewal.
// The core asks at least three times as often, unless Grant.Kept is longer.
func (c Claim) Alive() time.Duration { return min(c.TTL, 3*time.Second) }

// A Grant is a store's answer to an Acquire. The zero value is a refusal.
type Grant struct {
	OK bool

	// Fence is the fencing token: larger than every earlier token of the key, except that
	// the readers of one read phase share a token. A slot let in beside readers, or the
	// upgrade of a reader, ends their phase. 0 means that the store has no tokens.
	Fence uint64

	// Span says that the tokens Fence to Fence+Span-1 belong to the grant. 0 means 1; a
	// store may give fewer than the claim requested.
	Span int

	// TTL is how long the claim stands, counted from when the request was sent. 0 means
	// until the claim is released or the store reports its loss.
	TTL time.Duration

	// Left and Holder explain a refusal as far as the store knows: how long until the
	// blocking claim expires, and who owns the blocking claim.
	Left   time.Duration
	Holder Holder

	// Pause, in a refusal, is about how long the caller should wait before it asks again
	// for the first time without a wake-up. Later pauses are longer, up to the caller's
	// own maximum. Pause is 0 if requests are cheap, and for the claim whose turn has come,
	// so that the owner learns soon. A claim that moves up in the queue receives a shorter
	// Pause, and the core then asks sooner.
	Pause time.Duration

	// Kept, in a refusal, is how long the claim keeps its place without a new request, if
	// longer than [Claim.Alive]. A store may keep the places of claims far back in a queue
	// for longer, because each request costs the store more in a long queue, or costs money.
	// A store keeps the place of the first claim for the TTL at most. The core asks at least
	// three times in that time, and not when the blocking claim expires.
	Kept time.Duration

	// Next, in a refusal, says that the claim is the next to be granted: the core does not
	// let the pauses grow, but asks again after each Pause, or after its own maximum.
	Next bool

	// Passed says that the claim may have passed waiting claims, because the store keeps no
	// queue. The core then assumes that other processes still want the key if they wanted it
	// a second ago, and may keep the key for a moment to use up the tokens of Span. A store
	// that gives one token at a time need not set Passed.
	Passed bool

	// Floor, in a refusal, is the highest token that the store had given by then, for the
	// key or for any key. A pushed grant without a token above Floor is older than the
	// refusal, and may have expired. 0 if the store pushes no grants.
	Floor uint64

	// Blocked, in a refusal, says to people why the claim would be refused even without
	// the blocking claim: for example, servers that do not count yet. Mostly nil.
	Blocked error
}

// A Holder is the public view of a claim. All fields are hints: the claim may have ended
// since.
type Holder struct {
	ID      string        // public: PublicID of the claim's id
	Owner   string        // as the claim said
	Note    string        // as the claim said
	Fence   uint64        // 0 while Waiting
	Since   time.Time     // when the claim was granted, or began to wait, by the store's clock
	Left    time.Duration // until the claim expires without a renewal; 0 if unknown
	Weight  int64
	Limit   int64
	Waiting bool // in the queue, in order, after the holders
}

// PublicID returns the name under which people see the claim with the given id. The id
// cannot be computed from it.
func PublicID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// A Store keeps claims. All methods may be called at the same time.
type Store interface {
	// Acquire requests a claim, once, and does not wait for it. Acquire is idempotent: a
	// second request with the id of a live claim grants the claim again, with the same
	// fence and a fresh TTL. A reader beside a reader that was raised receives the raised
	// token instead, see [Renewal].
	Acquire(ctx context.Context, a Ask) (Grant, error)

	// Renew lets every claim stand for its TTL from now. Renew never creates, revives or
	// queues a claim. Renew returns one error per claim, in order:
	//
	//   - nil: the claim is kept.
	//   - ErrLost: the claim is certainly gone.
	//   - ErrInvalid: the store can never renew the claim like this; the claim stands as
	//     before.
	//   - another error: the outcome is unknown.
	//
	// A nil slice says that every claim is kept.
	Renew(ctx context.Context, rs []Renewal) []error

	// Release ends claims, held or waiting, and wakes the waiters behind them. Release
	// returns one error per claim, in order:
	//
	//   - nil: the claim ended now.
	//   - ErrLost: there was nothing to end.
	//   - another error: the outcome is unknown.
	//
	// A nil slice says that every claim ended.
	Release(ctx context.Context, rs []Release) []error

	// Close frees the store's own resources. Close leaves claims alone unless they cannot
	// outlive their client.
	Close() error
}

// A Watcher is a Store that can notify a waiting claim when to ask again.
type Watcher interface {
	// Watch calls wake, from any goroutine, whenever a new request for c may succeed.
	// wake does not block. Waking too often is harmless. A wake-up before Watch has
	// returned may be missed, so the caller asks after Watch, for the first time or once more.
	//
	// wake(Grant{}) means: ask again. A Grant with OK means that the claim has been
	// granted, unless the token is not above the Floor of the last refusal. The message
	// may be late, so the TTL of the Grant counts from when the last Acquire of the claim
	// that the store answered was sent, and the core confirms the claim by Renew.
	//
	// The watch outlives ctx, which bounds only the call. stop ends the watch: nothing that
	// happens after stop has returned wakes the claim. stop does not wait for wake, so a
	// wake-up for an earlier event may still come.
	Watch(ctx context.Context, c Claim, wake func(Grant)) (stop func(), err error)
}

// A Notifier is a Store that learns by itself that claims have ended, before their owner
// would learn at the next renewal.
type Notifier interface {
	// Notify calls lost, from any goroutine, when the Store learns that a claim of the
	// Store, held or waiting, has ended without a Release. A Store that has to connect for that
	// does so before it answers an Acquire, and misses no loss after. The core never requests a claim
	// with the same id again. lost does not block. err matches ErrLost and gives the
	// reason. stop ends the calls, but does not wait for lost: a call for an earlier loss may
	// still come.
	Notify(lost func(key, id string, err error)) (stop func())
}

// A Local is a Store that answers each Acquire, Renew and Release at once, from the memory of the
// process. The core neither limits an Acquire or a Release in time nor measures how long it takes,
// and renews the claims of a Locker by several calls at the same time.
type Local interface {
	// Local returns the Store itself. A Store that embeds a Local may do I/O, and is no Local,
	// because Local returns another Store then.
	Local() Store
}

// An Inspector is a Store that can show its claims to people.
type Inspector interface {
	// Holders returns the claims on a key: first the held claims, then the queue in FIFO
	// order, as far as the store knows. The core also finds there the claims that an upgrade
	// of a reader would wait behind. The result never contains a claim's own id.
	Holders(ctx context.Context, key string) ([]Holder, error)

	// Keys yields the keys with live claims that begin with prefix, in no order. An error
	// ends the sequence.
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]

	// Break ends the claim with the given public id, held or in the queue, at once, and
	// lets the next waiter in. The store refuses the claim's own id for ten seconds, so a
	// Notifier reports the loss to the owner; in the queue, only if the owner watches.
	// Break returns ErrLost if there is no such claim.
	Break(ctx context.Context, key, id string) error
}

// A Checker is a Store that can check the setup of its engine.
type Checker interface {
	// Check looks for settings of the engine that weaken the promises of the store. It
	// returns a sentence for people about every such setting: the value, the possible
	// harm, and what would be right.
	//
	// An error that matches ErrInvalid says that the store can keep no claim at all before
	// somebody changes the engine, for example because a Creator has not been created. The
	// error says what to do. Every other error says only that Check could not look, not
	// that the engine is wrong.
	Check(ctx context.Context) (warnings []string, err error)
}

// A Creator is a Store whose engine has to be prepared once, before its first claim, for
// example by making a table. Check returns an error if the engine is not prepared.
type Creator interface {
	Checker

	// Create prepares the engine. Create is idempotent, even if many callers create at
	// once: everything already there stays, claims included. Create may need rights that
	// claims do not need.
	Create(ctx context.Context) error

	// Schema returns the work of Create as statements of the engine, without their end
	// marks, for people who would rather read and run the statements by hand.
	Schema() []string
}

// An Ager is a Store whose engine may come back from a restart without the granted
// claims.
type Ager interface {
	// Age is how long the engine has run without such a restart, as of some moment since
	// the Store's last answer from the engine. Age does I/O only if the engine may have
	// restarted since the last look.
	Age(ctx context.Context) (time.Duration, error)
}
