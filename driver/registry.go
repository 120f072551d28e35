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

// ErrURL says that a store URL is wrong as written, so nothing has been tried. Every
// other error of Open comes from trying.
var ErrURL = errors.New("wrong store URL")

// An Opener makes a Store from a URL. An Opener rejects unknown parameters (see [Params])
// and never puts a password into an error. An error about the URL itself matches
// [ErrURL].
type Opener func(ctx context.Context, u *url.URL) (Store, error)

var registry struct {
	sync.RWMutex
	openers map[string]Opener
}

// Register makes a store available to [Open] under a URL scheme. Stores call Register
// from init. Register panics if the scheme is taken.
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

// Open makes the Store that a URL names. The package of the store must have been imported.
// Errors show the URL without its password.
func Open(ctx context.Context, rawURL string) (Store, error) {
	u, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	registry.RLock()
	open := registry.openers[u.Scheme]
	registry.RUnlock()
	if open == nil {
		return nil, unknownScheme(u.Scheme)
	}
	store, err := open(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", Redact(u), err)
	}
	return store, nil
}

// ParseURL parses the URL of a store, as Open does. It rejects a URL with an @ where no
// user can be: then a character of the password, such as a slash, has ended the password
// too early, and nobody can tell where it ends. Errors match [ErrURL] and show nothing of
// the URL, which may have a password.
func ParseURL(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err == nil && !astray(u) {
		return u, nil
	}
	var escape url.EscapeError
	why := "want scheme://host:port, such as redis://localhost:6379, or file:///var/lib/locks"
	switch {
	case strings.Contains(rawURL, "@"):
		why = "write /, #, ?, % and @ in a password as %2F, %23, %3F, %25 and %40, and every @ after the host as %40"
	case errors.As(err, &escape):
		why = "write % as %25"
	case strings.Contains(err.Error(), "invalid port"):
		why = "the port is no number"
	}
	return nil, fmt.Errorf("%w: it does not parse: %s", ErrURL, why)
}

// astray reports whether an @ may end a password that begins before what was parsed as the
// path, the parameters or the fragment. Paths of files may have an @, and so may the URLs
// of redlock's nodes. If astray is false, a password followed by an @ is in u.User, or in
// node=URL.
func astray(u *url.URL) bool {
	authority := u.Host != "" || u.User != nil
	path := u.Opaque + u.EscapedPath()
	if at := strings.LastIndexByte(path, '@'); at >= 0 && (authority || strings.Contains(path[:at], ":")) {
		return true
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if strings.Contains(name, "@") || strings.Contains(value, "@") && (authority || name != "node") {
			return true
		}
	}
	return strings.Contains(u.EscapedFragment(), "@")
}

// Redact renders a URL for people, without password, parameters and fragment, which may
// have secrets. If the password cannot be told from the rest, Redact shows only the scheme.
// Redact hides a user without a password, because the user may be a password.
func Redact(u *url.URL) string {
	path := u.Opaque + u.Path
	if astray(u) || strings.Contains(path, "@") {
		return u.Scheme + "://..."
	}
	shown := url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path}
	if u.User != nil {
		shown.User = url.User("xxxxx")
		if password, _ := u.User.Password(); password != "" && !strings.Contains(u.User.Username(), ":") {
			shown.User = url.UserPassword(u.User.Username(), "xxxxx")
		}
	}
	return shown.String()
}
