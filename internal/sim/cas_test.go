package sim

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

var registers = &backend{
	make:    newRegister,
	ttls:    []time.Duration{time.Second, 3 * time.Second, 10 * time.Second},
	kinds:   []Kind{Exclusive, Exclusive, Shared, Slots},
	atLeast: 2,
	manner:  []func(time.Duration) Faults{quiet, lossy, slow, hostile},
	cuts:    3,
	crowds:  []int{1, 1, 2, 3},
}

// TestCAS runs package caslock over a register that answers reads with earlier states, carries
// swaps out late, twice or not at all, compares digests as S3 does, and removes records that it
// need not keep. The register reports changes in half of the worlds; in the other worlds the
// waiters look. In half of the worlds a refusal has the record. The clock is an [engineClock].
func TestCAS(t *testing.T) { worlds.Run(t, 0.1, 5, registers.explore) }

// A register is the server.
type register struct {
	w      *World
	pushes bool
	look   time.Duration

	tells  bool // a refusal has the record that the key has
	clock  engineClock
	spare  time.Duration // how long the register keeps a record, in place of an hour; 0: an hour
	keeper sync.Once

	mu      sync.Mutex
	states  map[string][]state   // by key, in order; the last is the present state
	beats   map[uint64]time.Time // by nonce: when the page arrived
	ends    map[string]time.Time // when the register may remove the record of a key
	faulty  map[string]bool      // by process: its link has faults
	watches []*report
	changed chan struct{} // wakes the keeper
}

// A state is the record of a key from a time on.
type state struct {
	at     time.Time
	record caslock.Record
	dead   time.Time // when other processes may first end a claim; 0: there is none
}

func recordOf(data []byte) caslock.Record {
	if data == nil {
		return caslock.Record{}
	}
	sum := md5.Sum(data)
	return caslock.Record{Version: hex.EncodeToString(sum[:]), Data: data}
}

// A sheet is what the register reads of a page.
type sheet struct {
	Nonce       uint64
	Held, Queue []struct {
		ID   string
		Beat uint64
		Kept int64
	}
}

// lasting yields how long each claim of a sheet stands, from when the register saw its beat.
func (s *register) lasting(p sheet) iter.Seq2[time.Time, time.Duration] {
	return func(yield func(time.Time, time.Duration) bool) {
		for _, c := range slices.Concat(p.Held, p.Queue) {
			if !yield(s.beats[c.Beat], time.Duration(c.Kept)*time.Microsecond) {
				return
			}
		}
	}
}

// A report is a watch of a process.
type report struct {
	key     string
	link    *Link
	changed func(caslock.Record)
	stopped atomic.Bool
	last    atomic.Int64 // the number of the last record that arrived
	sent    int64
}

func newRegister(w *World) Store {
	r := w.Rand("register")
	return &register{
		w: w, pushes: r.IntN(2) == 0, look: pick(r, 50*time.Millisecond, 200*time.Millisecond),
		tells: r.IntN(2) == 0, clock: newEngineClock(r),
		states: make(map[string][]state), beats: make(map[uint64]time.Time),
		ends: make(map[string]time.Time), faulty: make(map[string]bool),
		changed: make(chan struct{}, 1),
	}
}

// calm implements [calming]. A claim stands for a 64th longer, as clocks may differ. A waiter
// that looks may have looked at a later place, and may be late by an eighth of the time for which
// the key was held: twice the longest TTL at most. A waiter enters the queue by a swap, which loses
// against some swaps of a busy process.
func (s *register) calm() (idle, place time.Duration) {
	idle = 100*time.Millisecond + s.w.longest/32
	if !s.pushes {
		const most = 16 // claims of a key
		idle += most*s.look + 2*s.w.longest/8
	}
	return idle, 10 * settled
}

// Connect implements [Store].
func (s *register) Connect(p *Process) driver.Store {
	far := &farRegister{s, p.Link("store")}
	s.keeper.Do(func() { go s.keep() })
	if s.pushes {
		return caslock.New(farWatcher{far}, nil)
	}
	return caslock.New(far, &caslock.Options{Look: s.look})
}

// Left implements [Store]. Only a process that wants the key finds that the claims of a
// killed process have expired.
func (s *register) Left() (keys []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.states)) {
		data := s.present(key).record.Data
		if data == nil {
			continue
		}
		var page sheet
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, err
		}
		for beat, kept := range s.lasting(page) {
			if time.Since(beat) < kept {
				keys = append(keys, key)
				break
			}
		}
	}
	return keys, nil
}

// Close implements [Store].
func (s *register) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.watches, func(r *report) bool { return !r.stopped.Load() && !r.link.p.Dead() }) {
		return errors.New("somebody still watches")
	}
	return nil
}

// fail removes all records, as an operator may, or sets wrong clocks.
func (s *register) fail(_ *rand.Rand, ttl time.Duration) bool {
	if s.setClocks() {
		return false
	}
	s.w.Judge.Forgot(2*ttl + time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w.Trace.add(Event{Step: Fault, Call: "purge"}, nil)
	clear(s.ends)
	for key := range s.states {
		s.put(key, nil, time.Time{})
	}
	return true
}

// present returns the last state of a key. The caller holds mu.
func (s *register) present(key string) state {
	s.expire(key)
	states := s.states[key]
	if len(states) == 0 {
		return state{}
	}
	return states[len(states)-1]
}

// put sets the state of a key, and reports it. The caller holds mu.
func (s *register) put(key string, data []byte, dead time.Time) {
	r := recordOf(data)
	states := append(s.states[key], state{time.Now(), r, dead})
	if old := slices.IndexFunc(states, func(st state) bool { return time.Since(st.at) < time.Minute }); old > 1 {
		states = slices.Delete(states, 0, old-1)
	}
	s.states[key] = states
	select {
	case s.changed <- struct{}{}:
	default:
	}
	for _, watch := range s.watches {
		if watch.key != key || watch.stopped.Load() {
			continue
		}
		watch.sent++
		n := watch.sent
		watch.link.push("report", key, "", len(data), func() {
			if !watch.stopped.Load() && watch.last.Load() < n { // in order
				watch.last.Store(n)
				watch.changed(r)
			}
		})
	}
}

// A farRegister is a client of the register.
type farRegister struct {
	*register
	link *Link
}

// Read implements [caslock.Register]. A replica that lags answers some reads.
func (f *farRegister) Read(ctx context.Context, key string) (caslock.Record, error) {
	return ask(ctx, f.link, "read", key, func() (caslock.Record, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		r, faults := f.link.rand("lag", key), f.link.faults()
		if faults.Twice == 0 || r.IntN(4) > 0 {
			return f.present(key).record, nil
		}
		asOf := time.Now().Add(-upto(r, faults.Most+10*faults.Delay))
		var answer state
		for _, st := range f.states[key] {
			if !st.at.After(asOf) {
				answer = st
			}
		}
		return answer.record, nil
	})
}

// Swap implements [caslock.Register].
func (f *farRegister) Swap(ctx context.Context, key, version string, data []byte, keep time.Duration) (string, error) {
	faulty := f.link.faults().Twice > 0
	f.mu.Lock()
	f.faulty[f.link.p.Name] = faulty
	f.mu.Unlock()
	return ask(ctx, f.link, "swap", key, func() (string, error) { return f.swap(f.link.p.Name, key, version, data, keep) })
}

// swap carries a swap out, and shows the new page in the trace.
func (s *register) swap(process, key, version string, data []byte, keep time.Duration) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := s.present(key).record; {
	case r.Version == version:
	case s.tells:
		return "", &caslock.ConflictError{Record: r}
	default:
		return "", caslock.ErrConflict
	}
	var page sheet
	if err := json.Unmarshal(data, &page); err != nil {
		return "", err
	}
	s.beats[page.Nonce] = time.Now()
	var dead time.Time
	for beat, kept := range s.lasting(page) {
		if end := beat.Add(kept + kept/64); dead.IsZero() || end.Before(dead) { // Clocks may differ.
			dead = end
		}
	}
	shown := ""
	for at, c := range slices.Concat(page.Held, page.Queue) {
		if at == len(page.Held) {
			shown += ", queued"
		}
		shown += fmt.Sprintf(" %s for %v", s.w.Trace.claim(c.ID), time.Duration(c.Kept)*time.Microsecond)
	}
	s.w.Trace.add(Event{Step: Arrive, Call: "page", Key: key, Process: process}, "held"+shown)
	s.put(key, data, dead)
	s.keeps(key, keep)
	return s.present(key).record.Version, nil
}

// List implements [caslock.Register].
func (f *farRegister) List(ctx context.Context, _ string) iter.Seq2[caslock.Record, error] {
	return func(yield func(caslock.Record, error) bool) {
		records, err := ask(ctx, f.link, "list", "", func() (list []caslock.Record, _ error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, key := range slices.Sorted(maps.Keys(f.states)) {
				if r := f.present(key).record; r.Version != "" {
					list = append(list, r)
				}
			}
			return list, nil
		})
		if err != nil {
			yield(caslock.Record{}, err)
			return
		}
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

type farWatcher struct{ *farRegister }

// Watch implements [caslock.Watcher].
func (f farWatcher) Watch(ctx context.Context, key string, changed func(caslock.Record)) (stop func(), err error) {
	watch := &report{key: key, link: f.link, changed: changed}
	_, err = ask(ctx, f.link, "watch", key, func() (string, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !slices.Contains(f.watches, watch) {
			f.watches = append(f.watches, watch)
		}
		return "done", nil
	})
	if err != nil {
		watch.stopped.Store(true)
		return nil, err
	}
	return func() { watch.stopped.Store(true) }, nil
}
