package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	_ "github.com/holdfast-go/holdfast/all" // the stores for --store
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/fileurl"
	"github.com/holdfast-go/holdfast/internal/silence"
	"github.com/holdfast-go/holdfast/memlock"
)

// patience is how long the store may take to answer a request.
const patience = 10 * time.Second

// checkLimit is how long the store may take to report its settings.
const checkLimit = 2 * time.Second

// A site is the store that the user has named.
type site struct {
	root    *cobra.Command
	quiet   bool // without warnings of the store
	checked bool // the warnings have been requested
}

func (s *site) register(cmd *cobra.Command) {
	s.root = cmd
	cmd.PersistentFlags().String("store", "",
		"`URL` of the store for the locks (default $HOLDFAST_STORE, else\nfiles in the cache folder of the user)")
}

// url returns the value of --store, else HOLDFAST_STORE, else the default. An empty --store
// is refused: the usual cause is a script with an unset variable, and such a script does
// not mean the default.
func (s *site) url() (string, error) {
	if flag := s.root.PersistentFlags().Lookup("store"); flag.Changed {
		return flag.Value.String(), nil
	}
	if env := os.Getenv("HOLDFAST_STORE"); env != "" {
		return env, nil
	}
	return defaultStore()
}

// defaultStore is a folder for file locks of this user. $XDG_RUNTIME_DIR is unsuitable:
// cron jobs lack the variable, so a job and a shell of the same user would not exclude each
// other, and the folder is removed when the user logs out.
func defaultStore() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", cli.Failure(cli.ExitUsage, fmt.Errorf("no place for locks, because %w: name a store by --store or HOLDFAST_STORE", err))
	}
	dir := filepath.Join(cache, "holdfast", "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", cli.Failure(cli.ExitUnreachable, fmt.Errorf("no place for locks: %w; name a store by --store or HOLDFAST_STORE", err))
	}
	return strings.ReplaceAll(fileurl.Of("file", dir), "@", "%40"), nil // C:/Users/me@corp looks like a password
}

// open opens the store, and prints the store's warnings. The errors have exit codes. The
// command prints losses itself, so the logger is silent.
func (s *site) open(ctx context.Context, trace *holdfast.Trace) (*holdfast.Locker, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	store, name, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	locks, err := holdfast.New(store, &holdfast.Options{Trace: trace, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		store.Close()
		return nil, err
	}
	if checker, ok := store.(driver.Checker); ok {
		err = s.check(ctx, checker, name)
	}
	if err != nil {
		locks.Close()
		return nil, err
	}
	return locks, nil
}

// connect opens the store without checks. connect returns the store and its URL for people.
func (s *site) connect(ctx context.Context) (store driver.Store, name string, err error) {
	where, err := s.url()
	if err != nil {
		return nil, "", err
	}
	if strings.HasPrefix(where, "mem:") {
		return nil, "", cli.Failure(cli.ExitUsage, errors.New("mem:// is a store within one process, so it would lock nobody out: use file:// or a server"))
	}
	began := time.Now()
	store, err = driver.Open(ctx, where)
	err = silence.For(ctx, err, time.Since(began))
	switch {
	case errors.Is(err, driver.ErrURL):
		return nil, "", cli.Failure(cli.ExitUsage, err)
	case err != nil:
		return nil, "", cli.StoreFailure(err)
	}
	if u, err := driver.ParseURL(where); err == nil { // the URL was valid a moment ago
		name = driver.Redact(u)
	}
	return store, name, nil
}

// check warns, once, of settings that weaken the guarantees of a store. If the store can
// keep no lock, check returns the reason. If the settings cannot be read, check stays
// silent: later answers of the store say more.
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
			cli.Say(s.root.ErrOrStderr(), "warning: %s", w)
		}
	}
	if errors.Is(err, driver.ErrInvalid) {
		text := strings.ReplaceAll(err.Error(), `"holdfast init" once with the URL of this store`, `"`+s.initLine(name)+`" once`)
		return cli.Failure(cli.ExitUsage, fmt.Errorf("open %s: %s", name, text))
	}
	return nil
}

// initLine returns the command that prepares the store; name is the store's URL for people.
// The parameters kept in the URL decide what init creates, and none of them is secret.
func (s *site) initLine(name string) string {
	if !s.root.PersistentFlags().Lookup("store").Changed {
		return "holdfast init" // HOLDFAST_STORE has the rest
	}
	where, err := s.url()
	if err != nil {
		return "holdfast init"
	}
	kept := url.Values{}
	if u, err := driver.ParseURL(where); err == nil {
		for name, values := range u.Query() {
			// Names of parameters for SQL Server may have upper case.
			if slices.Contains([]string{"database", "endpoint", "mode", "region", "sequence", "table"}, strings.ToLower(name)) && values[0] != "" {
				kept.Set(name, values[0])
			}
		}
	}
	if len(kept) > 0 {
		name += "?" + kept.Encode()
	}
	return "holdfast init --store '" + name + "'"
}

// kinds lists the schemes for --store.
func kinds() string {
	all := slices.DeleteFunc(driver.Schemes(), func(scheme string) bool { return scheme == "mem" })
	return strings.Join(all, ", ")
}

// rehearse acquires the lock in a separate store in memory, to find errors in the key or
// the options before the real store is used.
func rehearse(key string, opts ...holdfast.LockOption) error {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	_, err = locks.Lock(context.Background(), key, opts...)
	return cli.Bare(err)
}
