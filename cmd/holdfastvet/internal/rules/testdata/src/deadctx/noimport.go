package deadctx

import (
	"net/http"

	"github.com/go-redsync/redsync/v4"
)

// The fix would not compile here: the file does not import package context.
func noImport(r *http.Request, mutex *redsync.Mutex) error {
	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.UnlockContext(r.Context()) // want `the release fails if r.Context\(\) has ended`
	return nil
}
