package servers

import (
	"errors"
	"time"
)

const (
	// patience bounds every wait for a server, and for the making of its folder. A machine
	// with nothing else to do needs a hundredth of patience.
	patience = time.Minute

	// firstPause and lastPause are the pauses between two looks. Later pauses are longer,
	// since frequent looks cost more than a waiter can gain.
	firstPause = 5 * time.Millisecond
	lastPause  = 40 * time.Millisecond

	// glance bounds one look at a server that may be paused. The caller looks again if the
	// server does not answer.
	glance = time.Second
)

// await calls check until check returns nil. await returns the last error of check when
// the wait takes too long or gaveUp is closed.
func await(check func() error, gaveUp <-chan struct{}) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for pause := firstPause; ; pause = min(pause*5/4, lastPause) {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-late.C:
			return err
		case <-gaveUp:
			return err
		}
	}
}

// Await calls check again and again, and returns once check returns nil. Await fails the test after a
// minute, with the last error.
func Await(tb TB, what string, check func() error) {
	tb.Helper()
	if err := await(check, nil); err != nil {
		tb.Fatalf("wait for %s: %v", what, err)
	}
}

// awaited is Await for a value, which look returns without an error once there is one.
func awaited[T any](tb TB, what string, look func() (T, error)) (got T) {
	tb.Helper()
	Await(tb, what, func() (err error) {
		got, err = look()
		return err
	})
	return got
}

// Until is Await for a condition that has no error.
func Until(tb TB, what string, holds func() bool) {
	tb.Helper()
	Await(tb, what, func() error {
		if !holds() {
			return errors.New("it does not come about")
		}
		return nil
	})
}
