package sqllock

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A message tells a client of one of its claims.
type message struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// News is the text of a message.
type news struct {
	Key    string `json:"key"`
	ID     string `json:"id"`
	Fence  uint64 `json:"fence,omitempty"`
	Span   int    `json:"span,omitempty"`
	TTL    int64  `json:"ttl,omitempty"` // microseconds
	Broken bool   `json:"broken,omitempty"`
}

// messages returns what those who were let in, or broken, are to be told.
func (s *Store) messages(key string, b *book.Book, broken *book.Entry) []message {
	if s.dialect.publish == "" {
		return nil
	}
	var list []message
	add := func(to string, n news) {
		n.Key = escape(key)
		n.ID = escape(n.ID)
		if text, err := json.Marshal(n); err == nil && to != "" {
			list = append(list, message{To: to, Text: string(text)})
		}
	}
	for _, p := range b.Pushed {
		for i := range b.Held {
			if b.Held[i].ID == p.ID {
				add(b.Held[i].Session, news{ID: p.ID, Fence: p.Grant.Fence, Span: p.Grant.Span, TTL: micros(p.Grant.TTL)})
			}
		}
	}
	if broken != nil {
		add(broken.Session, news{ID: broken.ID, Broken: true})
	}
	return list
}

// A Listener brings what others send to this process.
type Listener interface {
	// To is where others send to it, by the engine's own means. It is "" if it
	// cannot listen, or what it hears is meant for everybody.
	To() string

	// Listen calls hear, which may take a second, with each message that comes,
	// and with "" when some may have been missed, until Close. It returns when
	// it listens, or why it cannot. It is called for each claim that waits;
	// hear reports whether any still does.
	Listen(ctx context.Context, hear func(text string) (waited bool)) error

	Close() error
}

// A Pushing store wakes claims in line, with a Listener.
type Pushing struct {
	*Store
	listener Listener

	listens atomic.Bool // it has been asked to

	mu       sync.Mutex
	watchers map[watched]*watcher
	lost     []*func(key, id string, err error)
}

type watched struct{ key, id string }

type watcher struct {
	at   watched
	wake func(driver.Grant)

	// The claim was refused since the watch began, and what was written then is
	// what a grant counts from. Guarded by Pushing.mu.
	counts bool
}

var (
	_ driver.Watcher  = (*Pushing)(nil)
	_ driver.Notifier = (*Pushing)(nil)
)

// Pushing returns s with wakes through l, which it closes. Use only one of the
// two stores.
func (s *Store) Pushing(l Listener) *Pushing {
	return &Pushing{Store: s, listener: l, watchers: make(map[watched]*watcher)}
}

// firstListen is how long the first claim is held up so that the loss of any
// will be heard.
const firstListen = 200 * time.Millisecond

// Acquire implements [driver.Store].
func (p *Pushing) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if p.dialect.publish != "" && !p.listens.Swap(true) {
		bounded, cancel := context.WithTimeout(ctx, min(firstListen, c.TTL/24))
		p.listener.Listen(bounded, p.hear) // Watch says why it cannot.
		cancel()
	}
	at := watched{c.Key, c.ID}
	p.mu.Lock()
	w := p.watchers[at]
	p.mu.Unlock()
	g, err := p.Store.acquire(ctx, asking{claim: c, from: p.listener.To(), watched: w != nil})
	if w != nil && err == nil && !g.OK {
		p.mu.Lock()
		w.counts = true
		p.mu.Unlock()
	}
	return g, err
}

// wake tells of a grant, or that asking may pay.
func (p *Pushing) wake(w *watcher, g driver.Grant) {
	p.mu.Lock()
	counts := w.counts
	p.mu.Unlock()
	if !counts {
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
	if err := p.listener.Listen(ctx, p.hear); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// Notify implements [driver.Notifier].
func (p *Pushing) Notify(lost func(key, id string, err error)) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = append(p.lost, &lost)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range p.lost {
			if p.lost[i] == &lost {
				p.lost = append(p.lost[:i:i], p.lost[i+1:]...)
				return
			}
		}
	}
}

// hear passes a message on. Of one that makes no sense, nobody is told: whoever
// it was for asks again.
func (p *Pushing) hear(text string) (waited bool) {
	if text == "" {
		p.look()
	} else {
		p.pass(text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watchers) > 0
}

func (p *Pushing) pass(text string) {
	var n news
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

// broken tells that an operator has ended a claim.
func (p *Pushing) broken(at watched) {
	p.mu.Lock()
	lost := slices.Clone(p.lost)
	p.mu.Unlock()
	for _, tell := range lost {
		(*tell)(at.key, at.id, driver.ErrBroken)
	}
}

// Close closes the listener, and what [Store.Close] does.
func (p *Pushing) Close() error {
	err := p.listener.Close()
	if closing := p.Store.Close(); err == nil {
		err = closing
	}
	return err
}
