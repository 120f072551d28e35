package sqlstore

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/callbacks"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A message notifies a client about a claim.
type message struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// A notification is the text of a message.
type notification struct {
	Key    string `json:"key"`
	ID     string `json:"id"`
	Fence  uint64 `json:"fence,omitempty"`
	Span   int    `json:"span,omitempty"`
	TTL    int64  `json:"ttl,omitempty"` // microseconds
	Broken bool   `json:"broken,omitempty"`
}

// messages returns the notifications for granted waiters and for a broken claim.
func (s *Store) messages(key string, b *book.Book, broken *book.Entry) []message {
	if s.dialect.publish == "" {
		return nil
	}
	var list []message
	add := func(to string, n notification) {
		n.Key = escape(key)
		n.ID = escape(n.ID)
		if text, err := json.Marshal(n); err == nil && to != "" {
			list = append(list, message{To: to, Text: string(text)})
		}
	}
	for _, p := range b.Pushed {
		for i := range b.Held {
			if b.Held[i].ID == p.ID {
				add(b.Held[i].Session, notification{ID: p.ID, Fence: p.Grant.Fence, Span: p.Grant.Span, TTL: micros(p.Grant.TTL)})
			}
		}
	}
	if broken != nil {
		add(broken.Session, notification{ID: broken.ID, Broken: true})
	}
	return list
}

// A Listener receives messages from other processes.
type Listener interface {
	// To is the address for messages to this process, by the engine's own means. To is ""
	// if the Listener cannot listen, or if its messages are meant for everybody.
	To() string

	// Listen calls receive, which may take a second, with each message until Close. Listen
	// calls receive with "" if messages may have been missed. Listen returns nil once the
	// Listener listens, or the reason why it cannot. The store calls Listen for each
	// waiting claim; receive reports whether a claim still waits.
	Listen(ctx context.Context, receive func(text string) (waited bool)) error

	Close() error
}

// A Pushing store wakes waiters, with a Listener.
type Pushing struct {
	*store
	listener Listener

	listens atomic.Bool // Listen has been called
	losses  callbacks.Losses

	mu       sync.Mutex
	watchers map[watched]*watcher
}

type watched struct{ key, id string }

type watcher struct {
	at   watched
	wake func(driver.Grant)

	// Guarded by Pushing.mu. A grant counts from the last refused Acquire. During an Acquire,
	// that is not known.
	refused bool          // since the watch began
	asking  int           // Acquire calls under way
	behind  time.Duration // see answer
}

var (
	_ driver.Watcher  = (*Pushing)(nil)
	_ driver.Notifier = (*Pushing)(nil)
)

// store is the Store without wake-ups, embedded without being exported.
type store = Store

// NewPushing returns s with wake-ups through l, which the new store closes. Use only one of
// the two stores.
func NewPushing(s *Store, l Listener) *Pushing {
	return &Pushing{store: s, listener: l, watchers: make(map[watched]*watcher)}
}

// firstListen bounds how long the first claim waits for Listen. The wait lets the store
// learn of the loss of every claim, the first included.
const firstListen = 200 * time.Millisecond

// Acquire implements [driver.Store].
func (p *Pushing) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if p.dialect.publish != "" && !p.listens.Swap(true) {
		bounded, cancel := context.WithTimeout(ctx, min(firstListen, a.TTL/24))
		p.listener.Listen(bounded, p.receive) // Watch reports the error.
		cancel()
	}
	at := watched{a.Key, a.ID}
	p.mu.Lock()
	w := p.watchers[at]
	if w != nil {
		w.asking++
	}
	p.mu.Unlock()
	got, err := p.store.acquire(ctx, asking{Ask: a, from: p.listener.To()})
	if w == nil {
		return got.grant, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.asking--
	if err == nil && !got.grant.OK {
		w.refused, w.behind = true, got.behind
	}
	return got.grant, err
}

// wake notifies a waiter of a grant, whose TTL counts from when the claim joined the queue, or
// that a retry may succeed.
func (p *Pushing) wake(w *watcher, g driver.Grant) {
	p.mu.Lock()
	known := w.refused && w.asking == 0
	behind := w.behind
	p.mu.Unlock()
	if g.OK && known {
		g.TTL = max(g.TTL-behind, 1)
	} else {
		g = driver.Grant{}
	}
	w.wake(g)
}

// Watch implements [driver.Watcher].
func (p *Pushing) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	w := &watcher{at: watched{c.Key, c.ID}, wake: wake}
	p.mu.Lock()
	p.watchers[w.at] = w
	p.mu.Unlock()
	stop = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.watchers[w.at] == w {
			delete(p.watchers, w.at)
		}
	}
	if err := p.listener.Listen(ctx, p.receive); err != nil {
		stop()
		return nil, silence.For(ctx, err, 0) // the Listener has its own limits
	}
	return stop, nil
}

// Notify implements [driver.Notifier].
func (p *Pushing) Notify(lost func(key, id string, err error)) (stop func()) {
	return p.losses.Notify(lost)
}

// receive takes a message from the Listener, and reports whether a claim still waits.
func (p *Pushing) receive(text string) (waited bool) {
	if text == "" {
		p.notifyWaiters()
	} else {
		p.deliver(text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watchers) > 0
}

// deliver passes a message on. deliver ignores an invalid message: the waiter retries anyway.
func (p *Pushing) deliver(text string) {
	var n notification
	if json.Unmarshal([]byte(text), &n) != nil {
		return
	}
	at := watched{unescape(n.Key), unescape(n.ID)}
	p.mu.Lock()
	w := p.watchers[at]
	p.mu.Unlock()
	switch {
	case n.Broken:
		p.broken(at)
	case w != nil:
		p.wake(w, driver.Grant{OK: n.Fence > 0, Fence: n.Fence, Span: n.Span, TTL: span(n.TTL)})
	}
}

// broken notifies the owner that an operator has ended a claim.
func (p *Pushing) broken(at watched) { p.losses.Tell(at.key, at.id, driver.ErrBroken) }

// Close closes the listener and the Store, see [Store.Close].
func (p *Pushing) Close() error {
	err := p.listener.Close()
	if closing := p.store.Close(); err == nil {
		err = closing
	}
	return err
}
