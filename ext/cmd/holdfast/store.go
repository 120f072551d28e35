package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	_ "github.com/holdfast-go/holdfast/ext/all" // the stores that --store can name
	"github.com/holdfast-go/holdfast/memlock"
)

// patience is how long the store may take to answer a question.
const patience = 10 * time.Second

// checkLimit is how long the store may take to tell of its settings.
const checkLimit = 2 * time.Second

// A site is the store that the user has named.
type site struct {
	root    *cobra.Command
	quiet   bool // no warnings of the store
	checked bool // it has been asked for them
}

func (s *site) register(cmd *cobra.Command) {
	s.root = cmd
	cmd.PersistentFlags().String("store", "",
		"`URL` of the store that keeps the locks (default $HOLDFAST_STORE,\nelse files in the cache folder of the user)")
}

// url returns what --store says, else HOLDFAST_STORE, else the default. An
// empty --store is what a script with an unset variable says: it is refused,
// because such a script does not mean the default.
func (s *site) url() (string, error) {
	if flag := s.root.PersistentFlags().Lookup("store"); flag.Changed {
		return flag.Value.String(), nil
	}
	if env := os.Getenv("HOLDFAST_STORE"); env != "" {
		return env, nil
	}
	return defaultStore()
}

// defaultStore is a folder for file locks of this user. It is not
// $XDG_RUNTIME_DIR, which cron jobs lack: a job and a shell of the same user
// would not exclude each other. It is also removed when the user logs out.
func defaultStore() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", failure(exitUsage, fmt.Errorf("no place for locks, because %w: name a store by --store or HOLDFAST_STORE", err))
	}
	dir := filepath.Join(cache, "holdfast", "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", failure(exitUnreachable, fmt.Errorf("no place for locks: %w; name a store by --store or HOLDFAST_STORE", err))
	}
	path := filepath.ToSlash(dir)
	if path[0] != '/' { // C:/Users/...
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String(), nil
}

// open opens the store, and tells what it warns of. Its errors have exit codes.
func (s *site) open(ctx context.Context, opts *holdfast.Options) (*holdfast.Locker, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	store, name, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	locks := holdfast.New(store, opts)
	if checker, ok := store.(driver.Checker); ok {
		err = s.check(ctx, checker, name)
	}
	if err != nil {
		locks.Close()
		return nil, err
	}
	return locks, nil
}

// connect opens the store as it is, and returns it with its URL for people.
func (s *site) connect(ctx context.Context) (store driver.Store, name string, err error) {
	where, err := s.url()
	if err != nil {
		return nil, "", err
	}
	if strings.HasPrefix(where, "mem:") {
		return nil, "", failure(exitUsage, errors.New("mem:// is a store within one process, so it would lock nobody out: use file:// or a server"))
	}
	if err := knownStore(where); err != nil {
		return nil, "", err
	}
	store, err = driver.Open(ctx, where)
	switch {
	case errors.Is(err, driver.ErrURL):
		return nil, "", failure(exitUsage, err)
	case err != nil:
		return nil, "", storeFailure(err)
	}
	if u, err := url.Parse(where); err == nil { // as it was a moment ago
		name = driver.Redact(u)
	}
	return store, name, nil
}

// check tells, once, which settings of a store weaken what it promises, and
// returns why it can keep no lock, if it cannot. If the settings cannot be looked
// at, that is no news: the store's other answers say more.
func (s *site) check(ctx context.Context, store driver.Checker, name string) error {
	if s.checked {
		return nil
	}
	s.checked = true
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	warnings, err := store.Check(ctx)
	for _, w := range warnings {
		if !s.quiet {
			say(s.root.ErrOrStderr(), "warning: %s", w)
		}
	}
	if errors.Is(err, driver.ErrInvalid) {
		return storeFailure(fmt.Errorf("open %s: %w", name, err))
	}
	return nil
}

// knownStore refuses a URL of a store that is not built in. The library would
// ask whether its package is imported, which is no question to users.
func knownStore(where string) error {
	u, err := url.Parse(where)
	if err != nil || u.Scheme == "" || slices.Contains(driver.Schemes(), u.Scheme) {
		return nil // or the library has more to say
	}
	return failure(exitUsage, fmt.Errorf("wrong store URL: no store for scheme %q (known: %s)", u.Scheme, kinds()))
}

// kinds lists the schemes that --store can name.
func kinds() string {
	all := slices.DeleteFunc(driver.Schemes(), func(scheme string) bool { return scheme == "mem" })
	return strings.Join(all, ", ")
}

// storeFailure is the exit of a call that the store has not answered as it
// should.
func storeFailure(err error) error {
	err = bare(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrInvalid), errors.Is(err, errors.ErrUnsupported), errors.Is(err, holdfast.ErrNotFenced):
		return failure(exitUsage, err)
	case errors.Is(err, context.DeadlineExceeded):
		return failure(exitUnreachable, fmt.Errorf("the store did not answer: %w", err))
	}
	return failure(exitUnreachable, err)
}

// rehearse takes a lock in a store of its own, to find out what is wrong with
// the key or the options: then nothing has been tried yet when the user hears
// of it.
func rehearse(key string, opts ...holdfast.LockOption) error {
	locks := holdfast.New(memlock.New(), nil)
	defer locks.Close()
	_, err := locks.Lock(context.Background(), key, opts...)
	return bare(err)
}

// bare takes the operation off an error, for a line that tells it already.
func bare(err error) error {
	if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
