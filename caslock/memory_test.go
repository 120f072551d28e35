package caslock_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
)

// A memory is a register in the memory of the process. Its versions are digests of the data,
// as the ETags of S3 are.
type memory struct {
	mu      sync.Mutex
	records map[string][]byte
	reads   int
	swaps   int
}

func newMemory() *memory { return &memory{records: make(map[string][]byte)} }

func version(data []byte) string {
	sum := md5.Sum(data)
	return hex.EncodeToString(sum[:])
}

func (m *memory) Read(ctx context.Context, key string) (caslock.Record, error) {
	if err := ctx.Err(); err != nil {
		return caslock.Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	return m.recordLocked(key), nil
}

func (m *memory) recordLocked(key string) caslock.Record {
	if data := m.records[key]; data != nil {
		return caslock.Record{Version: version(data), Data: data}
	}
	return caslock.Record{}
}

func (m *memory) Swap(ctx context.Context, key, old string, data []byte, _ time.Duration) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.swaps++
	if m.recordLocked(key).Version != old {
		return "", caslock.ErrConflict
	}
	m.records[key] = data
	return version(data), nil
}

func (m *memory) List(_ context.Context, prefix string) iter.Seq2[caslock.Record, error] {
	m.mu.Lock()
	records := maps.Clone(m.records)
	m.mu.Unlock()
	return func(yield func(caslock.Record, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(records)) {
			if strings.HasPrefix(key, prefix) && !yield(caslock.Record{Version: version(records[key]), Data: records[key]}, nil) {
				return
			}
		}
	}
}

// A pushing memory reports changes.
type pushing struct {
	*memory
	watches map[*func(caslock.Record)]string // the keys

	followers atomic.Int64 // the watches that have not been stopped
}

func newPushing() *pushing {
	return &pushing{memory: newMemory(), watches: make(map[*func(caslock.Record)]string)}
}

func (p *pushing) Swap(ctx context.Context, key, old string, data []byte, keep time.Duration) (string, error) {
	next, err := p.memory.Swap(ctx, key, old, data, keep)
	if err == nil {
		p.report(key)
	}
	return next, err
}

func (p *pushing) report(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.recordLocked(key)
	for changed, of := range p.watches {
		if of == key {
			(*changed)(r)
		}
	}
}

func (p *pushing) Watch(_ context.Context, key string, changed func(caslock.Record)) (stop func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[&changed] = key
	p.followers.Add(1)
	return sync.OnceFunc(func() {
		p.followers.Add(-1)
		go func() { // changed may call stop
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.watches, &changed)
		}()
	}), nil
}

// followed reports whether a watch has not been stopped.
func (p *pushing) followed() bool { return p.followers.Load() > 0 }

// A telling memory says in a refusal which record the key has.
type telling struct{ *memory }

func (t *telling) Swap(ctx context.Context, key, old string, data []byte, keep time.Duration) (string, error) {
	next, err := t.memory.Swap(ctx, key, old, data, keep)
	if errors.Is(err, caslock.ErrConflict) {
		t.mu.Lock()
		defer t.mu.Unlock()
		err = fmt.Errorf("refused: %w", &caslock.ConflictError{Record: t.recordLocked(key)})
	}
	return next, err
}
