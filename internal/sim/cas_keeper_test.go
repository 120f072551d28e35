package sim

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// keep has a process without a link that looks at the keys, and ends dead claims once the faults are
// over. Other processes begin to count the TTL of a dead claim when they want the key, so a key
// could be free for a TTL at any time. The keeper looks at each change, and when something ends: in
// between, it would see nothing new. It writes only if a claim has died, so that it hands over no key
// in place of a process. Nothing wakes the keeper at the end of the faults, so the keeper may
// notice the end a second late. Only worlds without faults are judged within that second.
func (s *register) keep() {
	local := caslock.New(localRegister{s}, nil)
	defer local.Close()
	for {
		select {
		case <-time.After(s.tidy(local)):
		case <-s.changed:
		case <-s.w.ctx.Done():
			return
		}
	}
}

// tidy looks at all keys, and returns when to look again if nothing changes.
func (s *register) tidy(local *caslock.Store) (pause time.Duration) {
	s.mu.Lock()
	over := !slices.ContainsFunc(s.w.Processes(), func(p *Process) bool {
		return !p.ended() && s.faulty[p.Name] && !p.Link("store").calmed()
	})
	pause = time.Second
	now := make(map[string]state)
	for key := range s.states {
		now[key] = s.present(key)
		if end, ok := s.ends[key]; ok { // Then the register removes the record.
			pause = min(pause, time.Until(end))
		}
	}
	s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(now)) {
		ends, left := over && !now[key].dead.IsZero(), time.Until(now[key].dead)
		if ends && left <= 0 {
			local.Release(context.Background(), []driver.Release{{Claim: driver.Claim{Key: key, ID: "keeper"}}})
			left = 20 * time.Millisecond
		} else {
			_, _ = local.Holders(context.Background(), key)
		}
		if ends {
			pause = min(pause, left)
		}
	}
	return pause
}

// calmed reports whether the faults of the link are over.
func (l *Link) calmed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calm
}

// A localRegister is the register without a network.
type localRegister struct{ *register }

// Read implements [caslock.Register].
func (s localRegister) Read(_ context.Context, key string) (caslock.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present(key).record, nil
}

// Swap implements [caslock.Register].
func (s localRegister) Swap(_ context.Context, key, version string, data []byte, keep time.Duration) (string, error) {
	return s.swap("keeper", key, version, data, keep)
}

// List implements [caslock.Register].
func (s localRegister) List(context.Context, string) iter.Seq2[caslock.Record, error] {
	panic("nobody lists")
}
