package driver

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"strings"
	"testing"
)

func TestOpenTellsAWrongURLFromAStoreThatFails(t *testing.T) {
	Register("wrong", func(_ context.Context, u *url.URL) (Store, error) {
		p := NewParams(u)
		p.Bool("sync", false)
		if err := p.Err(); err != nil {
			return nil, err
		}
		return nil, fs.ErrPermission
	})
	for raw, want := range map[string]error{
		"wrong://%zz:secret@x":         ErrURL,
		"":                             ErrURL,
		"/var/lib/locks":               ErrURL,
		"nonsense://x":                 ErrURL,
		"wrong://x?sunc=true":          ErrURL,
		"wrong://x?sync=maybe":         ErrURL,
		"wrong://x?sync=true&sync=1":   ErrURL,
		"wrong://x?sync=true;":         ErrURL,
		"wrong://u:secret#2@x":         ErrURL,
		"wrong://u:secret/2@x:6379":    ErrURL,
		"wrong:u:secret@x":             ErrURL,
		"wrong:/u:secret@x/0":          ErrURL,
		"wrong://u:p@x/secret@x":       ErrURL,
		"wrong://u:secret@x":           fs.ErrPermission,
		"wrong://u:secret@x?sync=true": fs.ErrPermission,
	} {
		_, err := Open(t.Context(), raw)
		if !errors.Is(err, want) || errors.Is(err, ErrURL) != (want == ErrURL) {
			t.Errorf("Open(%q): %v, want %v", raw, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q) shows the password: %v", raw, err)
		}
	}
}

func TestParseURL(t *testing.T) {
	for _, raw := range []string{"redis://u:secret%zz@h", "redis://u:secret/2@h:6379", "redis://h:secret"} {
		u, err := ParseURL(raw)
		if u != nil || !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "u:secret") {
			t.Errorf("ParseURL(%q): %v, %v", raw, u, err)
		}
	}
	if u, err := ParseURL("redis://u:secret%2F@h"); err != nil || u.Host != "h" {
		t.Errorf("%v, %v", u, err)
	}
}
