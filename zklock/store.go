package zklock

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/callbacks"
	"github.com/holdfast-go/holdfast/internal/newer"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// DefaultPrefix is the node above the keys, unless Options.Prefix is set.
const DefaultPrefix = "holdfast"

// MinTTL is the shortest TTL of a claim.
const MinTTL = time.Second

// Options configure how to reach an ensemble and where to keep the claims.
type Options struct {
	// Chroot is the node above all nodes of the store; "" for the root.
	Chroot string

	// Prefix is the node below Chroot and above the keys; the default is DefaultPrefix,
	// and "/" is refused. All processes must use the same Prefix.
	Prefix string

	// User and Password are for the digest scheme. Without TLS the password goes over
	// the network unencrypted: use TLS.
	User, Password string

	// TLS is nil for connections that are not encrypted.
	TLS *tls.Config

	// ACL lists the permissions on the nodes created by the store. The default is all
	// permissions for User, or for everybody if User is empty.
	ACL []ACL
}

// An ACL grants the permissions Perms, letters of cdrwa, to the ID of a Scheme.
type ACL struct{ Scheme, ID, Perms string }

// A Store keeps claims as nodes. Make one with [New].
type Store struct {
	config zoo.Config
	acl    []zoo.ACL
	root   string // node above the keys
	clock  *boottime.Clock

	background sync.WaitGroup
	closing    context.Context // ends with Close
	close      context.CancelFunc

	losses callbacks.Losses // silent after Close

	mu          sync.Mutex
	sessions    map[time.Duration]*session // by class
	openings    map[time.Duration]*opening
	claims      map[name]*claim
	watches     map[name][]*watch
	cleanerRuns bool // the cleaner is running
	closed      bool
}

// A name identifies a claim.
type name struct{ key, id string }

func nameOf(c driver.Claim) name { return name{c.Key, c.ID} }

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a store on an ensemble, given by the host:port addresses of one or more
// servers. New does no I/O: the first call opens a session. Bad options, or no servers, are
// [driver.ErrInvalid]. nil means the default options.
func New(servers []string, opts *Options) (*Store, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	acl, err := o.acl()
	if len(servers) == 0 {
		err = errors.Join(err, errors.New("no servers"))
	}
	err = errors.Join(err, checkPath("prefix", o.Prefix))
	if o.Chroot != "" && o.Chroot != "/" {
		err = errors.Join(err, checkPath("chroot", o.Chroot))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	s := &Store{
		config:   zoo.Config{Servers: slices.Clone(servers), TLS: o.TLS},
		acl:      acl,
		root:     strings.TrimSuffix("/"+strings.Trim(o.Chroot, "/"), "/") + "/" + strings.Trim(o.Prefix, "/"),
		clock:    boottime.New(),
		sessions: make(map[time.Duration]*session),
		openings: make(map[time.Duration]*opening),
		claims:   make(map[name]*claim),
		watches:  make(map[name][]*watch),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	if o.User != "" {
		s.config.Auth = []zoo.Auth{{Scheme: "digest", Secret: o.User + ":" + o.Password}}
	}
	return s, nil
}

// acl returns the ACL for all nodes.
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
				return nil, errors.New("the permissions of an ACL: want letters of cdrwa")
			}
			perms |= perm
		}
		if a.Scheme == "" || perms == 0 {
			return nil, errors.New("an ACL: want scheme:id:permissions")
		}
		all = append(all, zoo.ACL{Perms: perms, Scheme: a.Scheme, ID: a.ID})
	}
	return all, nil
}

// dir returns the node of a key.
func (s *Store) dir(key string) string { return s.root + "/" + nodeName(key) }

// errClosed is the error of calls to a closed Store.
var errClosed = errors.New("zklock: the store is closed")

// Close ends the sessions, and with them all claims. Later calls fail. A second Close
// does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
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
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if err := s.valid(a); err != nil {
		return driver.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	begin := s.clock.Now()
	for {
		cl, err := s.enter(ctx, a, begin)
		if err != nil {
			return driver.Grant{}, err
		}
		if err := cl.lock(ctx); err != nil {
			return driver.Grant{}, err
		}
		var g driver.Grant
		var done bool
		err = retry(ctx, func() (err error) {
			g, done, err = s.acquire(ctx, cl, a, begin)
			if errors.As(err, new(*newer.Error)) {
				err = cmp.Or(s.cancel(ctx, cl), err)
			}
			return err
		})
		cl.unlock()
		if done || err != nil {
			return g, err
		}
	}
}

// retry repeats a call over the next connection after a connection was lost. Every
// call here is idempotent. Errors that last until somebody changes something match
// ErrInvalid.
func retry(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !errors.Is(err, zoo.ErrUnknown) || ctx.Err() != nil {
			return certain(err)
		}
	}
}

// valid returns what is wrong with a request.
func (s *Store) valid(a driver.Ask) error {
	switch {
	case a.TTL < MinTTL:
		return fmt.Errorf("%w: a TTL of %v, want at least %v", driver.ErrInvalid, a.TTL, MinTTL)
	case a.Fence > 0:
		return fmt.Errorf("%w: it asks for token %d, and ZooKeeper gives them as they come", driver.ErrInvalid, a.Fence)
	}
	return nil
}

// certain adds ErrInvalid to errors that last until somebody changes something.
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
