package sqlstore

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

const (
	notifyLimit = time.Second // limit for one notifyWaiters
	notifyMost  = 256         // keys of one statement
)

// notifyWaiters notifies waiters of their claims' state in the table. If the waiters retried
// instead, every retry would write the row. Where every process reads the table after every
// write, a retry would wake all other waiters again.
func (p *Pushing) notifyWaiters() {
	ctx, cancel := context.WithTimeout(context.Background(), notifyLimit)
	defer cancel()
	all := p.waiting()
	for len(all) > 0 {
		some := make(map[string][]*watcher)
		for name, group := range all {
			if len(some) == notifyMost {
				break
			}
			some[name] = group
			delete(all, name)
		}
		if err := p.notifyRows(ctx, some); err != nil {
			for _, group := range some {
				for _, w := range group {
					w.wake(driver.Grant{})
				}
			}
		}
	}
}

// waiting returns the waiters, by the name of the row.
func (p *Pushing) waiting() map[string][]*watcher {
	p.mu.Lock()
	defer p.mu.Unlock()
	groups := make(map[string][]*watcher)
	for at, w := range p.watchers {
		name := escape(at.key)
		groups[name] = append(groups[name], w)
	}
	return groups
}

// notifyRows notifies the waiters of some rows.
func (p *Pushing) notifyRows(ctx context.Context, groups map[string][]*watcher) error {
	books := make(map[string]entry, len(groups))
	names := rowNames(groups)
	rows, err := query(ctx, p.store, expand(someRows, len(names)), len(names) > 1, names, readEntry)
	if err != nil {
		return err
	}
	for _, e := range rows {
		books[e.name] = e
	}
	for name, group := range groups {
		e, ok := books[name]
		if !ok {
			e.book = new(book.Book)
		}
		if e.err != nil {
			for _, w := range group {
				p.wake(w, driver.Grant{}) // to retry, which says why
			}
			continue
		}
		p.notifyOf(book.Moment{Now: e.now, Wall: micros(e.now)}, e.book, group)
	}
	return nil
}

// notifyOf wakes the waiters that a book grants a lock. notifyOf also wakes the waiters that
// should retry: a waiter without a place in the queue, or with nothing in its way. The
// rest waits on.
func (p *Pushing) notifyOf(m book.Moment, b *book.Book, group []*watcher) {
	grants := make(map[string]driver.Grant)
	for i := range b.Held {
		if e := &b.Held[i]; e.Until > m.Now {
			grants[e.ID] = driver.Grant{OK: true, Fence: e.Fence, Span: e.Span, TTL: e.Until - e.Asked}
		}
	}
	for _, t := range b.Tombs {
		for _, w := range group {
			if t.Broken && t.ID == w.at.id {
				p.broken(w.at)
			}
		}
	}
	b.Prune(m, func(string) bool { return true }) // takes from the queue the waiters that a retry would grant
	inQueue := make(map[string]bool)
	for i := range b.Queue {
		inQueue[b.Queue[i].ID] = true
	}
	for _, w := range group {
		if g := grants[w.at.id]; g.OK || !inQueue[w.at.id] {
			p.wake(w, g)
		}
	}
}

// rowNames returns the names of groups, the last name repeated up to width.
func rowNames(groups map[string][]*watcher) []any {
	list := make([]any, 0, width(len(groups)))
	for name := range groups {
		list = append(list, name)
	}
	for len(list) < cap(list) {
		list = append(list, list[len(list)-1])
	}
	return list
}
