package filelock

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

func init() { driver.Register("file", openURL) }

// openURL makes the Store of a URL, and its directory if that is missing.
func openURL(ctx context.Context, u *url.URL) (driver.Store, error) {
	dir, err := dirOf(u)
	if err != nil {
		return nil, err
	}
	p := driver.NewParams(u)
	opts := Options{
		Mode:         driver.Parse(p, "mode", private, "0600, 0660 or 0666", parseMode),
		AllowNetwork: p.OneOf("network", "refuse", "allow") == "allow",
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	s := New(dir, &opts)
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func parseMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return 0, err
	}
	return fs.FileMode(mode), checkMode(fs.FileMode(mode))
}

// dirOf returns the directory that a URL names: absolute, as a relative one
// would move with the process.
func dirOf(u *url.URL) (string, error) {
	path := u.Path
	switch {
	case u.User != nil:
		return "", wrong("it names a user")
	case u.Fragment != "":
		return "", wrong("a # in a path is written %%23")
	case u.Host != "" && u.Host != "localhost":
		return "", wrong("it names the host %q: write file:///%[1]s%[2]s for a path from the root, file:%[1]s%[2]s for a relative one", u.Host, u.Path)
	case u.Opaque != "":
		var err error
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return "", wrong("%w", err)
		}
	}
	if runtime.GOOS == "windows" && len(path) > 2 && path[0] == '/' && path[2] == ':' {
		path = path[1:] // /C:/dir
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return "", wrong("it names no directory, as file:///var/lib/app/locks does")
	}
	return filepath.Abs(filepath.FromSlash(path))
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", driver.ErrURL, fmt.Errorf(format, args...))
}
