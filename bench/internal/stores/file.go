package stores

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func file() Store {
	return Store{
		Name: "file", Title: "Files", Waiting: 100, Modules: []string{"github.com/gofrs/flock"},
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

// openGofrs waits in the system, as Lock of gofrs does, and not for the context. Waiting
// for the context would poll.
func openGofrs(at []string, _ time.Duration) (*Library, error) {
	return &Library{
		Lock: func(_ context.Context, key string) (func() error, error) {
			l := flock.New(filepath.Join(at[0], key))
			return l.Unlock, l.Lock()
		},
		Close: func() {},
	}, nil
}

// openFlock opens a file for each lock, locks the file, and closes the file.
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
