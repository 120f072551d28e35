package zklock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/zoo"
	"github.com/holdfast-go/holdfast/internal/boottime"
)

// DefaultPrefix is the node under which the keys are, unless another is chosen.
const DefaultPrefix = "holdfast"

// MinTTL is the shortest TTL of a claim.
const MinTTL = time.Second

// Options say how to reach an ensemble and where to keep the claims.
type Options struct {
	// Servers are host:port, one or more of the ensemble.
	Servers []string

	// Chroot is the node under which everything is; "" for the top.
	Chroot string

	// Prefix is the node below Chroot under which the keys are; the default is
	// DefaultPrefix, and "/" is refused. All processes must use the same.
	Prefix string

	// User and Password are for the digest scheme. The password goes over the
	// network as it is: use TLS.
	User, Password string

	// TLS is nil for connections that are not encrypted.
	TLS *tls.Config

	// ACL says who may do what with the nodes that the store makes. The default
	// is everything for the user, or for everybody if there is none.
	ACL []ACL
}

// An ACL lets whom a scheme knows by an id do what Perms say, letters of cdrwa.
type ACL struct{ Scheme, ID, Perms string }

// A Store keeps claims as nodes. Make one with [New].
type Store struct {
	config zoo.Config
	acl    []zoo.ACL
	root   string // node under which the keys are
	bad    error  // what is wrong with the options
	clock  *boottime.Clock

	background sync.WaitGroup
	closing    context.Context // ends with Close
	close      context.CancelFunc

	mu       sync.Mutex
	sessions map[time.Duration]*session // by class
	openings map[time.Duration]*opening
	claims   map[name]*claim
	watches  map[name][]*watch
	notices  []*notice
	keeping  bool // the keeper runs
	closed   bool
}

// A name tells claims apart.
type name struct{ key, id string }

func nameOf(c driver.Claim) name { return name{c.Key, c.ID} }

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a store. It does no I/O: the first call opens a session. What is
// wrong with the options, every call tells as [driver.ErrInvalid].
func New(opts Options) *Store {
	s := &Store{
		config:   zoo.Config{Servers: opts.Servers, TLS: opts.TLS},
		clock:    boottime.New(),
		sessions: make(map[time.Duration]*session),
		openings: make(map[time.Duration]*opening),
		claims:   make(map[name]*claim),
		watches:  make(map[name][]*watch),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	if opts.Prefix == "" {
		opts.Prefix = DefaultPrefix
	}
	s.root = strings.TrimSuffix("/"+strings.Trim(opts.Chroot, "/"), "/") + "/" + strings.Trim(opts.Prefix, "/")
	if opts.User != "" {
		s.config.Auth = []zoo.Auth{{Scheme: "digest", Secret: opts.User + ":" + opts.Password}}
	}
	var err error
	s.acl, err = opts.acl()
	if len(opts.Servers) == 0 {
		err = errors.New("no servers")
	}
	s.bad = errors.Join(err, checkPath("prefix", opts.Prefix))
	if opts.Chroot != "" && opts.Chroot != "/" {
		s.bad = errors.Join(s.bad, checkPath("chroot", opts.Chroot))
	}
	return s
}

// acl is the ACL of all nodes.
func (o Options) acl() (all []zoo.ACL, err error) {
	switch {
	case len(o.ACL) > 0:
	case o.User != "":
		o.ACL = []ACL{{"auth", "", "cdrwa"}}
	default:
		o.ACL = []ACL{{"world", "anyone", "cdrwa"}}
	}
	for _, a := range o.ACL {
		var perms int32
		for _, letter := range a.Perms {
			perm, ok := map[rune]int32{'c': zoo.CreateChild, 'd': zoo.DeleteChild, 'r': zoo.Read, 'w': zoo.Write, 'a': zoo.Admin}[letter]
			if !ok {
				return nil, fmt.Errorf("the permissions %q: want letters of cdrwa", a.Perms)
			}
			perms |= perm
		}
		if a.Scheme == "" || perms == 0 {
			return nil, fmt.Errorf("the ACL %s:%s:%s: want scheme:id:permissions", a.Scheme, a.ID, a.Perms)
		}
		all = append(all, zoo.ACL{Perms: perms, Scheme: a.Scheme, ID: a.ID})
	}
	return all, nil
}

// dir is the node of a key.
func (s *Store) dir(key string) string { return s.root + "/" + nodeName(key) }

// errClosed is what calls to a closed Store return.
var errClosed = errors.New("zklock: the store is closed")

// Close ends the sessions, and with them all claims. Calls fail from then on. A
// second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.notices = nil
	var open []*session
	for _, k := range s.sessions {
		open = append(open, k)
	}
	s.mu.Unlock()
	s.close()
	var all sync.WaitGroup
	for _, k := range open {
		all.Go(k.zoo.Close)
	}
	all.Wait()
	s.background.Wait()
	return nil
}

// Acquire implements [driver.Store].
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := s.valid(c); err != nil {
		return driver.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	begin := s.clock.Now()
	for {
		cl, err := s.enter(ctx, c, begin)
		if err != nil {
			return driver.Grant{}, err
		}
		if err := cl.lock(ctx); err != nil {
			return driver.Grant{}, err
		}
		var g driver.Grant
		var done bool
		err = insist(ctx, func() (err error) {
			g, done, err = s.acquire(ctx, cl, c, begin)
			return err
		})
		cl.unlock()
		if done || err != nil {
			return g, err
		}
	}
}

// insist makes a call again over the next connection if one was lost meanwhile.
// Every call here can be repeated. Errors that do not pass until somebody changes
// something match ErrInvalid.
func insist(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !errors.Is(err, zoo.ErrUnknown) || ctx.Err() != nil {
			return certain(err)
		}
	}
}

// valid says what is wrong with a claim.
func (s *Store) valid(c driver.Claim) error {
	switch {
	case c.TTL < MinTTL:
		return fmt.Errorf("%w: a TTL of %v, want at least %v", driver.ErrInvalid, c.TTL, MinTTL)
	case c.Fence > 0:
		return fmt.Errorf("%w: it asks for token %d, and ZooKeeper gives them as they come", driver.ErrInvalid, c.Fence)
	}
	return nil
}

// certain adds ErrInvalid to the errors that do not pass until somebody changes
// something.
func certain(err error) error {
	var code zoo.Code
	if !errors.As(err, &code) {
		return err
	}
	switch code {
	case zoo.NoAuth, zoo.InvalidACL, zoo.AuthFailed:
		return fmt.Errorf("%w: %w: see to the ACL of the nodes, and to the user", driver.ErrInvalid, err)
	case zoo.Unimplemented:
		return fmt.Errorf("%w: %w: want ZooKeeper 3.5.3 or newer, which has container nodes", driver.ErrInvalid, err)
	}
	return err
}
