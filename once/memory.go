package once

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// Memory keeps records in the memory of a single process. Use Memory for tests, and for
// programs of a single process that may lose the records when the program ends. The
// zero value is ready to use. Methods never block, and fail only because of a token.
type Memory struct {
	mu      sync.Mutex
	records map[string]kept
	sweepAt int
}

// A kept record expires at until.
type kept struct {
	Record
	until time.Time
}

var _ Records = (*Memory)(nil)

// Load implements [Records].
func (m *Memory) Load(_ context.Context, key string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loadLocked(key, time.Now()).copy(), nil
}

// Begin implements [Records].
func (m *Memory) Begin(_ context.Context, key string, token uint64, fingerprint string, keep time.Duration) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	r, changed, err := m.loadLocked(key, now).AfterBegin(key, token, fingerprint)
	if changed {
		m.sweepLocked(now)
		m.records[key] = kept{r, now.Add(keep)}
	}
	return r.copy(), err
}

// Finish implements [Records].
func (m *Memory) Finish(_ context.Context, key string, token uint64, result []byte, keep time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	r, changed, err := m.loadLocked(key, now).AfterFinish(key, token, bytes.Clone(result))
	if changed {
		m.records[key] = kept{r, now.Add(keep)}
	}
	return err
}

// Forget implements [Records].
func (m *Memory) Forget(_ context.Context, key string, token uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, changed, err := m.loadLocked(key, time.Now()).AfterForget(key, token)
	if changed {
		m.records[key] = kept{r, m.records[key].until}
	}
	return err
}

// loadLocked returns a record that has not expired.
func (m *Memory) loadLocked(key string, now time.Time) Record {
	k, ok := m.records[key]
	if !ok || !now.Before(k.until) {
		return Record{}
	}
	return k.Record
}

// sweepLocked removes the expired records, once there are twice as many records as the last
// sweep left.
func (m *Memory) sweepLocked(now time.Time) {
	const few = 64
	if len(m.records) < m.sweepAt {
		return
	}
	live := make(map[string]kept, len(m.records)) // a map never shrinks
	for key, k := range m.records {
		if now.Before(k.until) {
			live[key] = k
		}
	}
	m.records, m.sweepAt = live, max(2*len(live), few)
}

// copy returns a record that shares no memory with r.
func (r Record) copy() Record {
	r.Result = bytes.Clone(r.Result)
	return r
}
