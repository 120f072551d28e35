package verify

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/register"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// ErrStore reports that nothing can be shown with this store.
var ErrStore = errors.New("the store cannot serve")

// ErrNemesis reports that a fault cannot be done to this store.
var ErrNemesis = errors.New("wrong nemesis")

// ErrKind reports that this store cannot keep locks of a kind.
var ErrKind = errors.New("wrong kind")

// A target is the store under test.
type target struct {
	starter      starter // zero if the store is the user's
	engine       *engine
	started      bool // by the run, which may harm it
	url          *url.URL
	name         string // for people, without a password
	freesOnDeath bool
	prefix       string // of the keys of this run
	registers    register.Place
}

// newTarget finds the store of a run, or starts the store.
func (c Config) newTarget(ctx context.Context, h *servers.Host, folder string) (t *target, err error) {
	t = &target{engine: &engine{url: c.Store}, prefix: fmt.Sprintf("holdfast-verify/%d/", c.Seed)}
	if c.Store == "" {
		t.name, t.started = cmp.Or(c.Start, defaultEngine), true
		if t.starter, err = starterOf(t.name); err != nil {
			return nil, err
		}
		if t.engine, err = c.startEngine(h, t.starter, folder); err != nil {
			return nil, err
		}
		if err := t.patiently(ctx, t.engine.prepare); err != nil {
			return nil, err
		}
	}
	if t.url, err = driver.ParseURL(t.engine.url); err != nil {
		return nil, err
	}
	if t.url.Scheme == "mem" {
		return nil, fmt.Errorf("%w: mem:// is the memory of one process, which workers do not share", driver.ErrURL)
	}
	if c.Store != "" { // more runs with the same seed may use the store
		t.prefix += rand.Text() + "/"
		t.name = driver.Redact(t.url)
	}
	t.freesOnDeath = t.url.Scheme == "file" || t.sessions()
	return t, nil
}

// sessions reports whether locks end with the sessions of a database.
func (t *target) sessions() bool { return t.url.Query().Get("mode") == "session" }

// suffers returns the named nemeses, or the nemeses that the store promises to stand if
// named is nil. It returns an error if the store cannot suffer a named nemesis.
func (t *target) suffers(named []plan.Nemesis) ([]plan.Nemesis, error) {
	can, stands := t.faults()
	for _, n := range named {
		switch {
		case n.Server() && !t.started:
			return nil, fmt.Errorf("%w: %s harms a server, which has to be one that --start has started (possible: %s)", ErrNemesis, n, plan.List(can))
		case !slices.Contains(can, n):
			why := ""
			if n.Network() {
				why = ", because " + obstacle(t.url)
			}
			return nil, fmt.Errorf("%w: %s cannot befall %s%s (possible: %s)", ErrNemesis, n, t.name, why, plan.List(can))
		}
	}
	if named != nil {
		return named, nil
	}
	return stands, nil
}

// faults returns the nemeses that can befall the store, and the subset whose harm the store
// promises to stand.
func (t *target) faults() (can, stands []plan.Nemesis) {
	for _, n := range plan.Nemeses() {
		if t.can(n) {
			can = append(can, n)
			if len(t.waived(n)) == 0 {
				stands = append(stands, n)
			}
		}
	}
	return can, stands
}

// spared returns the harm that is not done to servers, because the servers are the user's.
func (t *target) spared() (all []plan.Nemesis) {
	if t.started || t.url.Scheme == "file" || t.url.Scheme == "sqlite" {
		return nil
	}
	for _, n := range plan.Nemeses() {
		if n.Server() && slices.ContainsFunc(starters, func(s starter) bool {
			like, err := url.Parse(s.like)
			return err == nil && like.Scheme == t.url.Scheme && (&target{starter: s, url: like}).can(n)
		}) {
			all = append(all, n)
		}
	}
	if all == nil { // a second name of some store
		all = []plan.Nemesis{plan.Restart, plan.KillStore, plan.PauseStore}
	}
	return all
}

// can reports whether a nemesis can befall the store.
func (t *target) can(n plan.Nemesis) bool {
	switch n {
	case plan.Kill:
		return true
	case plan.Pause:
		return canPause
	case plan.Partition, plan.Slow, plan.DropReply:
		return obstacle(t.url) == ""
	case plan.Restart, plan.KillStore:
		return t.starter.servers > 0
	case plan.PauseStore:
		return t.starter.servers > 0 && canPause
	}
	return slices.Contains(t.starter.more, n)
}

// open opens the store as a client that no fault harms.
func (t *target) open(ctx context.Context, ttl time.Duration) (locks *holdfast.Locker, err error) {
	err = t.patiently(ctx, func(ctx context.Context) error {
		locks, err = holdfast.Open(ctx, t.url.String(), &holdfast.Options{Prefix: t.prefix, TTL: ttl, Owner: "verify", Logger: slog.New(slog.DiscardHandler)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	return locks, nil
}

// patience is how long the store may take to serve for the first time. Beside other work,
// servers with a slow disk have taken more than a minute.
const patience = 5 * time.Minute

// patiently calls try again after an error, because newly started servers may need a while.
// A user's servers must serve at once. Every call of try must end within patience, counted
// from the first call.
func (t *target) patiently(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try(ctx)
		hopeless := errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrURL) || errors.Is(err, errors.ErrUnsupported)
		if err == nil || hopeless || !t.started || rest.For(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// kinds tests which kinds of locks the store can keep. It returns an error if the store
// cannot keep a named kind; nil names no kind.
func (t *target) kinds(ctx context.Context, locks *holdfast.Locker, named []plan.Kind) (all []plan.Kind, err error) {
	var reason error
	for _, kind := range plan.Kinds() {
		if named != nil && !slices.Contains(named, kind) {
			continue
		}
		var opts []holdfast.LockOption
		switch kind {
		case plan.Shared:
			opts = append(opts, holdfast.Shared())
		case plan.Slots:
			opts = append(opts, holdfast.Slots(plan.SlotLimit))
		}
		err := t.patiently(ctx, func(ctx context.Context) error {
			lock, err := locks.Lock(ctx, "try", opts...)
			if err == nil {
				err = lock.Unlock()
			}
			return err
		})
		switch {
		case err == nil:
			all = append(all, kind)
		case !errors.Is(err, driver.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported):
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		case named != nil:
			return nil, fmt.Errorf("%w: %s cannot keep %s: %w", ErrKind, t.name, kind, err)
		default:
			reason = err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %w", ErrStore, reason)
	}
	return all, nil
}

// remains waits until the store shows no claims, and returns the claims that it still
// shows, by key. The error is [errors.ErrUnsupported] if the store cannot show claims. A look has
// a limit, because the answer of a server may be lost.
func (t *target) remains(ctx context.Context, locks *holdfast.Locker, patience time.Duration) (map[string][]driver.Holder, error) {
	for end := time.Now().Add(patience); ; {
		limited, cancel := context.WithTimeout(ctx, slack)
		left, err := claims(limited, locks)
		cancel()
		switch {
		case len(left) == 0 && err == nil || errors.Is(err, errors.ErrUnsupported):
			return nil, err
		case time.Now().After(end):
			return left, err
		case rest.For(ctx, 50*time.Millisecond) != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// claims returns the holders and waiters of the keys of the run.
func claims(ctx context.Context, locks *holdfast.Locker) (map[string][]driver.Holder, error) {
	all := make(map[string][]driver.Holder)
	for key, err := range locks.Keys(ctx, "") {
		if err != nil {
			return nil, err
		}
		holders, err := locks.Holders(ctx, key)
		if err != nil {
			return nil, err
		}
		if len(holders) > 0 {
			all[key] = holders
		}
	}
	return all, nil
}
