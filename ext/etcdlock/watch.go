package etcdlock

import (
	"context"
	"maps"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/driver"
)

// A folder is what a Store hears of the claims on one key: who leaves. All its
// claims that wait there share it. The watches of all folders share one stream.
// The fields but ready are guarded by Store.mu.
type folder struct {
	key     string
	ready   chan struct{} // closed when etcd has confirmed the watch
	cancel  context.CancelFunc
	users   int
	linger  *time.Timer                 // ends the watch; nil while there are users
	wakeups map[string]map[*wakeup]bool // by the id of the claim

	// looks is how many requests that read the line are on their way, and left
	// who has left meanwhile and since: the answer may be older than that.
	looks int
	left  map[string]int64 // revision in which it left, by name

	// since is the revision after which all who leave are heard of. Whoever has
	// not looked at the line since then may have missed somebody.
	since int64
}

const (
	// linger is how long a folder stays open for the next who waits.
	linger = 5 * time.Second

	// watchLimit is how long etcd may take to confirm a watch. Whoever has none
	// asks again and again instead.
	watchLimit = time.Second

	// rewatch is the pause before a watch that has ended is made again.
	rewatch = 200 * time.Millisecond

	// streamName is what tells streams of watches apart: the client has one for
	// all whose metadata are the same. A stream goes on with the token of its
	// user with which it began, and when that has run out, etcd refuses new
	// watches in it, which the client may try without end. They need another stream.
	streamName = "holdfast-stream"
)

// Watch implements [driver.Watcher].
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	f, err := s.enlist(c.Key)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.ready:
	case <-ctx.Done():
		s.leave(f)
		return nil, ctx.Err()
	}
	w := &wakeup{wake}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.wakeups[c.ID] == nil {
		f.wakeups[c.ID] = make(map[*wakeup]bool, 1)
	}
	f.wakeups[c.ID][w] = true
	return func() { s.unwatch(f, c.ID, w) }, nil
}

// A wakeup waits for one claim to hold, or to be worth asking for again.
type wakeup struct{ wake func(driver.Grant) }

func (s *Store) unwatch(f *folder, id string, w *wakeup) {
	s.mu.Lock()
	there := f.wakeups[id][w]
	delete(f.wakeups[id], w)
	if len(f.wakeups[id]) == 0 {
		delete(f.wakeups, id)
	}
	s.mu.Unlock()
	if there {
		s.leave(f)
	}
}

// enlist returns the folder of a key, with one more user.
func (s *Store) enlist(key string) (*folder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	f := s.folders[key]
	if f == nil {
		ctx, cancel := context.WithCancel(s.ctx)
		f = &folder{key: key, ready: make(chan struct{}), cancel: cancel, wakeups: make(map[string]map[*wakeup]bool)}
		s.folders[key] = f
		s.running.Go(func() { s.follow(ctx, f) })
	}
	f.users++
	if f.linger != nil {
		f.linger.Stop()
		f.linger = nil
	}
	return f, nil
}

// leave ends what enlist has begun.
func (s *Store) leave(f *folder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.users--; f.users > 0 || s.closed {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(linger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.linger == timer && s.folders[f.key] == f {
			delete(s.folders, f.key)
			f.cancel()
		}
	})
	f.linger = timer
}

// follow hears who leaves until ctx ends. It begins with what happens from now
// on, which etcd sends at once. A watch that begins with the past has to wait for
// the next tick of a tenth of a second.
func (s *Store) follow(ctx context.Context, f *folder) {
	open := false
	s.watch(ctx, s.names.folder(f.key), []clientv3.OpOption{clientv3.WithFilterPut()}, func(rev int64) {
		s.mu.Lock()
		f.since = rev
		s.mu.Unlock()
		if !open {
			open = true
			close(f.ready)
			return
		}
		s.wake(f) // They may have missed something.
	}, func(events []*clientv3.Event) { s.departed(f, events) })
}

// watch calls begin when etcd has confirmed a watch of all keys with a prefix,
// with the revision after which it begins, and hear with what happens to them,
// all of one step of etcd's together. It makes the watch again, and calls begin
// again, when it has ended; it returns when ctx has.
func (s *Store) watch(ctx context.Context, prefix string, options []clientv3.OpOption, begin func(rev int64), hear func([]*clientv3.Event)) {
	options = append(options, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	for ctx.Err() == nil {
		stream, created := s.stream.Load(), false
		once, cancel := context.WithCancel(clientv3.WithRequireLeader(
			metadata.AppendToOutgoingContext(ctx, streamName, strconv.FormatInt(stream, 10))))
		late := time.AfterFunc(2*watchLimit, cancel)
		for r := range s.client.Watch(once, prefix, options...) {
			if r.Created {
				late.Stop()
				created = true
				begin(r.Header.Revision)
			}
			if len(r.Events) > 0 {
				hear(r.Events)
			}
		}
		late.Stop()
		cancel()
		if !created {
			s.stream.CompareAndSwap(stream, stream+1)
		}
		select {
		case <-time.After(rewatch):
		case <-ctx.Done():
		}
	}
}

// attend begins a look at the line of a key, and returns what ends it.
func (s *Store) attend(key string) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[key]
	if f == nil {
		return func() {}
	}
	f.looks++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.looks--; f.looks == 0 {
			f.left = nil
		}
	}
}

// remaining are those of a line, read at a revision, that have not left since, as
// far as it is known. Call it with mu held.
func (s *Store) remaining(key string, rev int64, l line) line {
	rest := make(line, 0, len(l))
	for _, p := range l {
		if !s.goneSince(key, p.name, rev) {
			rest = append(rest, p)
		}
	}
	return rest
}

// goneSince reports whether a place that was in the line at a revision has left
// since, as far as it is known. Call it with mu held.
func (s *Store) goneSince(key, name string, rev int64) bool {
	f := s.folders[key]
	return f != nil && f.left[name] > rev
}

// departed takes the news that claims have left, and wakes who holds now.
func (s *Store) departed(f *folder, events []*clientv3.Event) {
	left := make(map[string]int64, len(events))
	for _, e := range events {
		left[string(e.Kv.Key)] = e.Kv.ModRevision
	}
	var calls []func()
	s.mu.Lock()
	if f.looks > 0 {
		if f.left == nil {
			f.left = make(map[string]int64)
		}
		maps.Copy(f.left, left)
	}
	for id, wakeups := range f.wakeups {
		g, wakes := s.strike(f, s.table[id], left)
		for w := range wakeups {
			if wakes {
				calls = append(calls, func() { w.wake(g) })
			}
		}
	}
	s.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// strike takes who has left, each in a revision, out of the way of a claim. It
// reports whether the claim holds now, by a grant, or is to ask again. Call it with
// mu held.
func (s *Store) strike(f *folder, c *claim, left map[string]int64) (g driver.Grant, wakes bool) {
	switch {
	case c == nil || c.state != waiting:
		return g, false
	case left[c.name] > c.rev:
		c.state, c.ahead = asking, nil // It has lost its own place.
		return g, true
	case !c.ahead.without(left) || !c.ahead.fits(c.Weight, c.Limit):
		return g, false
	case c.turn() && c.seen >= f.since && c.lease.lasts(s.now()):
		c.hold()
		return s.pushed(c), true
	}
	return g, true
}

// pushed is the grant of a claim whose turn has come. It stands until its owner
// confirms it, but no longer than it may be silent. Call it with mu held.
func (s *Store) pushed(c *claim) driver.Grant {
	until := s.now().Add(c.Alive())
	if end := c.lease.end(); end.Before(until) {
		until = end
	}
	s.stand(c, until)
	return c.granted(until.Sub(c.asked))
}

// wake lets all who wait in a folder ask again.
func (s *Store) wake(f *folder) {
	var calls []func(driver.Grant)
	s.mu.Lock()
	for _, wakeups := range f.wakeups {
		for w := range wakeups {
			calls = append(calls, w.wake)
		}
	}
	s.mu.Unlock()
	for _, call := range calls {
		call(driver.Grant{})
	}
}
