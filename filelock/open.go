package filelock

import (
	"context"
	"io/fs"
	"net/url"
	"strconv"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/fileurl"
)

func init() { driver.Register("file", openURL) }

// openURL makes the Store of a URL, and the directory if missing.
func openURL(ctx context.Context, u *url.URL) (driver.Store, error) {
	dir, err := fileurl.Path(u, "file:///var/lib/app/locks")
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
	s, err := New(dir, &opts)
	if err != nil {
		return nil, err
	}
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
