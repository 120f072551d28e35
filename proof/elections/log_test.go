//go:build unix

package elections

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/unproved"
	"github.com/holdfast-go/holdfast/internal/wallclock"
)

// A fencedLog takes what leaders write, and refuses those with a token below one that
// it has seen.
type fencedLog struct {
	began   time.Time
	mu      sync.Mutex
	taken   []entry
	refused []entry
	changed chan struct{} // closed at the next write
}

// An entry says that its writer found, after that time, that it still held the lock
// with this token.
type entry struct {
	who   string
	token uint64
	at    time.Time
}

func newLog() *fencedLog { return &fencedLog{began: time.Now(), changed: make(chan struct{})} }

func (l *fencedLog) write(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.taken); n > 0 && l.taken[n-1].token > e.token {
		l.refused = append(l.refused, e)
		return
	}
	l.taken = append(l.taken, e)
	close(l.changed)
	l.changed = make(chan struct{})
}

// last returns what was taken last, and what ends when there is more.
func (l *fencedLog) last() (e entry, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.taken); n > 0 {
		e = l.taken[n-1]
	}
	return e, l.changed
}

// check looks for two leaders: by a token that two have, and by the times at which
// they found that they held the lock. Those hold for what was refused as well.
func (l *fencedLog) check(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	owners := make(map[uint64]string)
	all := slices.Concat(l.taken, l.refused)
	for _, e := range all {
		if owner, known := owners[e.token]; known && owner != e.who {
			t.Errorf("token %d is that of %s and of %s", e.token, owner, e.who)
		}
		owners[e.token] = e.who
	}
	slices.SortFunc(all, func(a, b entry) int { return a.at.Compare(b.at) })
	for i := 1; i < len(all); i++ {
		if before, e := all[i-1], all[i]; before.token > e.token {
			if wallclock.SetBy(l.began) != 0 {
				unproved.Logf(t, "that nobody led beside another: the clock was set")
				break
			}
			t.Errorf("%s held token %d when %s had led with %d for %v or more", e.who, e.token, before.who, before.token, e.at.Sub(before.at))
		}
	}
	t.Logf("%d terms, %d writes, and %d refused because their leader had been replaced", len(owners), len(l.taken), len(l.refused))
}
