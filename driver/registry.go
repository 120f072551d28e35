package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// ErrURL says that a store URL is wrong as it stands, so that nothing has been
// tried. All other errors of Open come from trying.
var ErrURL = errors.New("wrong store URL")

// An Opener makes a Store from a URL. It rejects parameters that it does not
// know (see [Params]) and never puts a password into an error. What it finds
// wrong with the URL itself matches [ErrURL].
type Opener func(ctx context.Context, u *url.URL) (Store, error)

var registry struct {
	sync.RWMutex
	openers map[string]Opener
}

// Register makes a store available to [Open] under a URL scheme. Stores call
// it from init. It panics if the scheme is taken.
func Register(scheme string, open Opener) {
	registry.Lock()
	defer registry.Unlock()
	if _, taken := registry.openers[scheme]; taken {
		panic("driver: Register called twice for scheme " + scheme)
	}
	if registry.openers == nil {
		registry.openers = make(map[string]Opener)
	}
	registry.openers[scheme] = open
}

// Schemes returns the registered URL schemes, sorted.
func Schemes() []string {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.openers))
}

// Open makes the Store that a URL names. The package of the store must have
// been imported. Errors show the URL without its password.
func Open(ctx context.Context, rawURL string) (Store, error) {
	u, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	registry.RLock()
	open := registry.openers[u.Scheme]
	registry.RUnlock()
	if open == nil {
		return nil, unknownScheme(u)
	}
	store, err := open(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", Redact(u), err)
	}
	return store, nil
}

// ParseURL parses the URL of a store, as Open does. Unlike those of [url.Parse], its
// errors do not show the URL, which may have a password; they match [ErrURL].
func ParseURL(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err == nil {
		return u, nil
	}
	// The error repeats the URL, or as much of a password as it takes for a port.
	if parse := (*url.Error)(nil); errors.As(err, &parse) {
		err = parse.Err
	}
	if strings.Contains(rawURL, "@") {
		err = errors.New("write /, #, ?, % and @ in a password as %2F, %23, %3F, %25 and %40")
	}
	return nil, fmt.Errorf("%w: it does not parse: %w", ErrURL, err)
}

func unknownScheme(u *url.URL) error {
	known := strings.Join(Schemes(), ", ")
	if known == "" {
		known = "none; import the package of a store"
	}
	if u.Scheme == "" {
		return fmt.Errorf("%w: it has no scheme, such as file:///var/lib/locks has (known: %s)", ErrURL, known)
	}
	return fmt.Errorf("%w: no store for scheme %q (known: %s; is the store's package imported?)", ErrURL, u.Scheme, known)
}

// Redact renders a URL for people: without password, and without the value of
// any query parameter, since some stores take secrets there.
func Redact(u *url.URL) string {
	shown := *u
	shown.RawQuery = ""
	shown.Fragment = ""
	// A password ends up here if the slashes before it are missing, or if it
	// has a slash itself.
	shown.Opaque = withoutPassword(u, u.Opaque)
	shown.Path, shown.RawPath = withoutPassword(u, u.Path), ""
	return shown.Redacted()
}

func withoutPassword(u *url.URL, text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 || u.User == nil && !strings.Contains(text[:at], ":") {
		return text
	}
	return "/xxxxx" + text[at:]
}
