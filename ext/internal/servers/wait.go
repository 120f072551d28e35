package servers

import (
	"errors"
	"time"
)

const (
	// patience bounds every wait for a server, and for what makes its folder. A
	// machine that has nothing else to do needs a hundredth.
	patience = time.Minute

	// glance bounds one look at a server that may be paused, by those who look
	// again if it does not answer.
	glance = time.Second
)

// await calls check until it returns nil, and returns its last error when that
// takes too long or gaveUp is closed.
func await(check func() error, gaveUp <-chan struct{}) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-late.C:
			return err
		case <-gaveUp:
			return err
		}
	}
}

// mustAwait is await for what has to come about in a test.
func mustAwait(tb TB, what string, check func() error) {
	tb.Helper()
	if err := await(check, nil); err != nil {
		tb.Fatalf("wait for %s: %v", what, err)
	}
}

// Until returns when what a test waits for has come about, which it looks for again and
// again. It fails the test after a minute.
func Until(tb TB, what string, holds func() bool) {
	tb.Helper()
	mustAwait(tb, what, func() error {
		if !holds() {
			return errors.New("it does not come about")
		}
		return nil
	})
}
