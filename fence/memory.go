package fence

import (
	"container/list"
	"context"
	"sync"
)

// A Memory keeps the highest token seen of each key in memory, for data that a single
// process guards. The zero value is ready to use; do not copy a Memory.
//
// A Memory is empty when the process starts, so the first token of each key passes then. If
// that is not acceptable, or if several processes write, keep the tokens with the data, as
// [SQL] does.
type Memory struct {
	// Max is how many keys are remembered at least, 65,536 unless set. Beyond Max, the keys
	// that were checked longest ago are forgotten, and the next token of such a key passes,
	// whatever it is. So set Max higher than the number of keys that are checked while a
	// holder may be paused.
	Max int

	mu   sync.Mutex
	keys map[string]*mark
	idle list.List // marks that no call uses, the oldest first
}

const defaultMax = 1 << 16

// A mark is the highest token of a key.
type mark struct {
	key     string
	highest uint64
	calls   int           // calls that use the mark
	writer  uint64        // the token of the current writes
	writing int           // the number of current writes
	ended   chan struct{} // closed when the current writes have ended; nil without a waiter
	place   *list.Element // in Memory.idle, nil while in use
}

// Check calls write, and returns the error of write, unless a larger token of the key has
// been seen: then Check returns an [OutdatedError]. A token that is not refused counts as
// seen from then on, whatever becomes of its write. A larger token waits until the writes of
// smaller tokens have returned; writes with equal tokens run at the same time.
//
// The key has 1 to 512 bytes of UTF-8, and the token is the result of
// [holdfast.Lock.Fence]; invalid keys and tokens are refused with an error. If ctx ends
// while Check waits, Check returns the error of ctx and does not call write.
//
// [holdfast.Lock.Fence]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Lock.Fence
func (m *Memory) Check(ctx context.Context, key string, token uint64, write func() error) error {
	if err := checkArguments(key, token); err != nil {
		return err
	}
	if err := m.enter(ctx, key, token); err != nil {
		return err
	}
	defer m.leave(key)
	return write()
}

// enter waits for the turn of a token.
func (m *Memory) enter(ctx context.Context, key string, token uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.use(key)
	for {
		if token < k.highest {
			m.unuse(k)
			return &OutdatedError{Key: key, Token: token, Highest: k.highest}
		}
		k.highest = token
		if k.writing == 0 || k.writer == token {
			k.writer = token
			k.writing++
			return nil
		}
		if k.ended == nil {
			k.ended = make(chan struct{})
		}
		if err := m.await(ctx, k.ended); err != nil {
			m.unuse(k)
			return failed(key, token, err)
		}
	}
}

// await releases the mutex while it waits.
func (m *Memory) await(ctx context.Context, ended <-chan struct{}) error {
	m.mu.Unlock()
	defer m.mu.Lock()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Memory) leave(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[key]
	k.writing--
	if k.writing == 0 && k.ended != nil {
		close(k.ended)
		k.ended = nil
	}
	m.unuse(k)
}

// use returns the mark of a key. The mark stays in memory until unuse.
func (m *Memory) use(key string) *mark {
	k := m.keys[key]
	if k == nil {
		if m.keys == nil {
			m.keys = make(map[string]*mark)
		}
		k = &mark{key: key}
		m.keys[key] = k
	}
	if k.place != nil {
		m.idle.Remove(k.place)
		k.place = nil
	}
	k.calls++
	return k
}

func (m *Memory) unuse(k *mark) {
	k.calls--
	if k.calls > 0 {
		return
	}
	k.place = m.idle.PushBack(k)
	most := m.Max
	if most <= 0 {
		most = defaultMax
	}
	for len(m.keys) > most && m.idle.Len() > 0 {
		oldest := m.idle.Remove(m.idle.Front()).(*mark)
		delete(m.keys, oldest.key)
	}
}
