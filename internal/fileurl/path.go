// Package fileurl reads the paths of files and directories from URLs, and writes such URLs.
package fileurl

import (
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// Path returns the path that a URL names. The path is absolute, as a relative path would
// move with the process. Errors match [driver.ErrURL]; example is a valid URL for the
// error.
func Path(u *url.URL, example string) (string, error) {
	path := u.Path
	switch {
	case u.User != nil:
		return "", wrong("it names a user")
	case u.Fragment != "":
		return "", wrong("a # in a path is written %%23")
	case u.Host != "" && u.Host != "localhost":
		return "", wrong("it names the host %q: write %[3]s:///%[1]s%[2]s for a path from the root, %[3]s:%[1]s%[2]s for a relative one", u.Host, u.Path, u.Scheme)
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
		return "", wrong("it names no path, as %s does", example)
	}
	return filepath.Abs(filepath.FromSlash(path))
}

// Of returns the URL of an absolute path. On Windows a path begins with a letter, and a URL
// path with a slash.
func Of(scheme, path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: scheme, Path: path}).String()
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", driver.ErrURL, fmt.Errorf(format, args...))
}
