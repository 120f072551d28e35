// Package backoff lets a process leave a key to waiters in other processes, on stores
// without a queue. On such stores the process that has just released a key retries first,
// and could keep the key forever.
package backoff

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// turn is how long a process goes on once other processes wait. Without a queue, a
	// hand-over takes long, so more hand-overs would cost much.
	turn = 100 * time.Millisecond

	// Pause is how long a process then stays away at most. In the long run, waiters retry
	// at the same interval, the default of holdfast.Options.Poll, so that all have the
	// same chance.
	Pause = 500 * time.Millisecond
)

// ErrResting is the reason for a refusal during a back-off: the key may be free.
var ErrResting = errors.New("others wait for the key, and this process has just had it")

// Keys are the keys of a process that other processes wait for. The zero value is ready.
type Keys struct {
	Turn  time.Duration // how long a process goes on once other processes wait; 0 means 100ms
	Pause time.Duration // how long a process then stays away at most; 0 means [Pause]

	mu    sync.Mutex
	byKey map[string]state
	sweep int // number of keys at which old keys are looked for
}

// A state is the progress of a process with a key that other processes wait for.
type state struct {
	since time.Time // when the turn began
	left  time.Time // when the rest began
	back  time.Time // when the process may come back, zero during the turn
}

// Released notes that the process has released the key while other processes wait.
func (k *Keys) Released(key string) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	s, known := k.byKey[key]
	switch {
	case !known || !s.back.IsZero() && now.After(s.back):
		s = state{since: now}
	case s.back.IsZero() && now.Sub(s.since) > cmp.Or(k.Turn, turn):
		pause := cmp.Or(k.Pause, Pause)
		s.left, s.back = now, now.Add(pause-rand.N(pause/2))
	}
	if k.byKey == nil {
		k.byKey = make(map[string]state)
	}
	k.byKey[key] = s
	k.tidyLocked(now)
}

// Resting reports whether the process has to leave the key to other processes for now.
func (k *Keys) Resting(key string) bool {
	_, left := k.rest(key)
	return left > 0
}

// Look returns the pause before the next look at a key during a rest, 0 if there is no rest: not less
// than least, longer later in the rest, and a millisecond past its end at most.
func (k *Keys) Look(key string, least time.Duration) (pause time.Duration) {
	gone, left := k.rest(key)
	if left == 0 {
		return 0
	}
	return min(left+time.Millisecond, max(least, gone))
}

// rest returns how long the rest has lasted, and for how long it goes on; left is 0 without a rest.
func (k *Keys) rest(key string) (gone, left time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, known := k.byKey[key]
	if !known || s.back.IsZero() {
		return 0, 0
	}
	now := time.Now()
	if left = s.back.Sub(now); left > 0 {
		return now.Sub(s.left), left
	}
	delete(k.byKey, key)
	return 0, 0
}

// Over notes that another process has acquired the key: this process need not leave the key
// any longer.
func (k *Keys) Over(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byKey, key)
}

const (
	fewKeys = 1000
	old     = time.Minute
)

// tidyLocked removes keys that the process has not come back to.
func (k *Keys) tidyLocked(now time.Time) {
	if len(k.byKey) <= max(k.sweep, fewKeys) {
		return
	}
	for key, s := range k.byKey {
		if now.Sub(s.since) > old {
			delete(k.byKey, key)
		}
	}
	k.sweep = 2 * len(k.byKey)
}
