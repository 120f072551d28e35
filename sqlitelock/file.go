package sqlitelock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/netfs"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

var errMoved = errors.New("the file was removed or replaced, so that others would not see locks in what is still open; open the store again")

// A file is a database as first found. A different file may be at the same path later.
type file struct {
	db   *sql.DB
	own  string // the path, if this package has opened it
	mu   sync.Mutex
	seen atomic.Pointer[place]
	lost atomic.Bool // the file is no longer in place
}

type place struct {
	path string
	info fs.FileInfo
}

// A client runs statements while the file is in place.
type client struct {
	sqlstore.Client
	file *file
}

func (c *client) Query(ctx context.Context, st sqlstore.Statement, each func(sqlstore.Scan) error) error {
	return c.file.guard(ctx, func() error { return c.Client.Query(ctx, st, each) })
}

func (c *client) Exec(ctx context.Context, st sqlstore.Statement) (r sqlstore.Result, err error) {
	err = c.file.guard(ctx, func() error {
		r, err = c.Client.Exec(ctx, st)
		return err
	})
	return r, err
}

// guard runs a statement, if the file is still in place.
//
// It only stats the file and never opens it. A process that closes any descriptor of a file
// loses all its locks on the file, including the locks of SQLite.
func (f *file) guard(ctx context.Context, run func() error) error {
	at, err := f.find(ctx)
	if err != nil {
		return err
	}
	info, err := os.Stat(at.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, at.info) {
		f.abandon()
	}
	switch {
	case f.lost.Load():
		return fmt.Errorf("%w: %s: %w", driver.ErrInvalid, at.path, errMoved)
	case err != nil:
		return err
	}
	if err := run(); err != nil {
		return fmt.Errorf("%s: %w", at.path, err)
	}
	return nil
}

// abandon closes the database if this package has opened it. A new file at the same path
// uses the same shared memory beside the file, and must not find this database there.
func (f *file) abandon() {
	if !f.lost.Swap(true) && f.own != "" {
		f.db.Close()
	}
}

// find connects, and returns where the file is.
func (f *file) find(ctx context.Context) (*place, error) {
	if at := f.seen.Load(); at != nil {
		return at, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.seen.Load(); at != nil {
		return at, nil
	}
	at, err := f.connect(ctx)
	if err != nil {
		return nil, err
	}
	f.seen.Store(at)
	return at, nil
}

func (f *file) connect(ctx context.Context) (*place, error) {
	if _, ok := f.db.Driver().(*sqlite.Driver); !ok {
		return nil, fmt.Errorf("%w: the database is open with the driver %T: want modernc.org/sqlite", driver.ErrInvalid, f.db.Driver())
	}
	var before fs.FileInfo
	if f.own != "" {
		var err error
		if before, err = inspect(f.own); err != nil {
			return nil, err
		}
	}
	path, mode, err := f.ask(ctx)
	switch {
	case err != nil && f.own != "":
		return nil, fmt.Errorf("%s: %w", f.own, err)
	case err != nil:
		return nil, err
	case path == "":
		return nil, fmt.Errorf("%w: the database has no file that other processes could open: a store in memory is mem://", driver.ErrInvalid)
	case f.own == "":
		if _, err := inspect(path); err != nil {
			return nil, err
		}
	case mode != "wal":
		return nil, fmt.Errorf("%w: %s: its journal_mode stays %s instead of wal, which several processes need: use a file system that can share memory", driver.ErrInvalid, path, mode)
	}
	info, err := os.Stat(path)
	if err == nil && before != nil && !os.SameFile(before, info) {
		err = fmt.Errorf("%s: %w", path, errMoved)
	}
	return &place{path, info}, err
}

// ask returns the path of the main database and its journal mode.
func (f *file) ask(ctx context.Context) (path, mode string, err error) {
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return "", "", err
	}
	defer conn.Close()
	err = conn.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path)
	if err == nil {
		err = conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode)
	}
	return path, mode, err
}

// network returns the kind of network file system of a directory, if any. A test replaces
// network.
var network = netfs.Kind

// inspect refuses a path where no database can be, or where locks would not be safe. The
// file may be missing.
func inspect(path string) (fs.FileInfo, error) {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%w: %s: its folder is missing: make it first", driver.ErrInvalid, path)
	}
	if kind := network(dir); kind != "" {
		return nil, fmt.Errorf("%w: %s is on a network file system (%s), where SQLite cannot keep processes apart: use a local one", driver.ErrInvalid, path, kind)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is a folder, or no regular file: name the file of a database in it", driver.ErrInvalid, path)
	}
	return info, nil
}

// dsn is a data source name for modernc.org/sqlite.
func dsn(path string, pragmas ...string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/dir
	}
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return u.String()
}

// openDB opens a database with one connection, which is kept.
//
// The busy timeout of the client ignores contexts and can starve a caller: package sqllock
// waits instead. A second connection would only be in the way of the first.
func openDB(path string, pragmas ...string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, append([]string{"busy_timeout(0)"}, pragmas...)...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	return db, nil
}
