package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/fileurl"
)

func init() { driver.Register("sqlite", open) }

// open opens the file that a URL names. It creates the file and the table if missing: no
// operator has to do so first.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	path, err := fileurl.Path(u, "sqlite:///var/lib/app/locks.db")
	if err != nil {
		return nil, err
	}
	p := driver.NewParams(u)
	opts := &Options{Table: p.Text("table", "")}
	synchronous := p.OneOf("synchronous", "normal", "full")
	if err := p.Err(); err != nil {
		return nil, err
	}
	db, err := openDB(path, "journal_mode(WAL)", "synchronous("+synchronous+")")
	if err != nil {
		return nil, err
	}
	f := &file{db: db, own: path}
	s, err := newStore(f, newListener(f), opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", driver.ErrURL, err), db.Close())
	}
	s.close = db.Close
	_, err = s.Check(ctx)
	if errors.Is(err, driver.ErrInvalid) {
		err = s.Create(ctx)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
