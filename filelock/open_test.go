package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

func opened(t *testing.T, url string) *Store {
	t.Helper()
	s, err := driver.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*Store)
}

// rooted returns a path as URLs have it: /C:/dir for C:/dir.
func rooted(path string) string { return "/" + strings.TrimPrefix(path, "/") }

func TestURL(t *testing.T) {
	root := filepath.ToSlash(t.TempDir())
	t.Chdir(root)
	type target struct {
		dir  string
		opts Options
	}
	for url, want := range map[string]target{
		"file://" + rooted(root) + "/a":                      {root + "/a", Options{Mode: private}},
		"file://localhost" + rooted(root) + "/b?mode=0660":   {root + "/b", Options{Mode: 0o660}},
		"file:relative/c?network=allow":                      {root + "/relative/c", Options{Mode: private, AllowNetwork: true}},
		"file:with%20space%23?mode=666":                      {root + "/with space#", Options{Mode: 0o666}},
		"file://" + rooted(root) + "/x/../d/?network=refuse": {root + "/d", Options{Mode: private}},
	} {
		s := opened(t, url)
		s.opts.Clock = nil
		if filepath.ToSlash(s.dir) != want.dir || !reflect.DeepEqual(s.opts, want.opts) {
			t.Errorf("%s opens %s with %+v, want %s with %+v", url, s.dir, s.opts, want.dir, want.opts)
		}
		if info, err := os.Stat(want.dir); err != nil || !info.IsDir() {
			t.Errorf("%s has not made its directory: %v", url, err)
		}
	}
}

func TestWrongURL(t *testing.T) {
	root := filepath.ToSlash(t.TempDir())
	t.Chdir(root)
	for url, want := range map[string]string{
		"file:":                                 "names no path",
		"file://":                               "names no path",
		"file:///a%00b":                         "names no path",
		"file:a%zzb":                            "invalid URL escape",
		"file://locks/a":                        `file:///locks/a`,
		"file://me:secret@localhost/a":          "names a user",
		"file:///a#b":                           "%23",
		"file://" + rooted(root) + "?mode=0755": "0600, 0660 or 0666",
		"file://" + rooted(root) + "?mode=rw":   "0600, 0660 or 0666",
		"file://" + rooted(root) + "?network=maybe": "refuse, allow",
		"file://" + rooted(root) + "?mod=0600":      "known: mode, network",
	} {
		_, err := driver.Open(t.Context(), url)
		if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s is refused with %v, want %q", url, err, want)
		}
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("wrong URLs have made %v, %v", entries, err)
	}
}

func TestNewDoesNothingYet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	s := must.Get(New(dir, nil))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("New has made the directory: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestClaimsThatCannotBeKept(t *testing.T) {
	u := in(t, t.TempDir(), nil)
	long, year := exclusive(strings.Repeat("k", driver.MaxKey+1)), exclusive("key")
	year.TTL = 9000 * 60 * 60 * 1e9
	for _, c := range []driver.Ask{exclusive(""), long, year} {
		if err := u.fails(c); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("a key of %d bytes for %v is refused with %v", len(c.Key), c.TTL, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.Acquire(ctx, exclusive("key")); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was cancelled before says %v", err)
	}
}
