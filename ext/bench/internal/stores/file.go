package stores

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

func file() Store {
	return Store{
		Name: "file", Title: "Files", Modules: []string{"github.com/gofrs/flock"},
		Sides: []Side{
			{Name: "Holdfast", Open: openFile},
			{Name: "gofrs/flock", Kind: Peer, Open: openGofrs},
			{Name: "flock(2)", Kind: Bare, Open: openFlock},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server { return &Server{At: []string{tb.TempDir()}} },
	}
}

func openFile(at []string, ttl time.Duration) (*Library, error) {
	return holdfastAt([]string{"file://" + filepath.Join(at[0], "locks")}, ttl)
}

// openGofrs waits in the system, as its Lock does, and not for the context: that
// way would poll.
func openGofrs(at []string, _ time.Duration) (*Library, error) {
	return &Library{
		Lock: func(_ context.Context, key string) (func() error, error) {
			l := flock.New(filepath.Join(at[0], key))
			return l.Unlock, l.Lock()
		},
		Close: func() {},
	}, nil
}

// openFlock locks the file that it opens for each lock, and closes it.
func openFlock(at []string, _ time.Duration) (*Library, error) {
	return &Library{
		Lock: func(_ context.Context, key string) (func() error, error) {
			f, err := os.OpenFile(filepath.Join(at[0], key), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				return nil, err
			}
			if err := lockFile(f); err != nil {
				f.Close()
				return nil, err
			}
			return f.Close, nil
		},
		Close: func() {},
	}, nil
}
