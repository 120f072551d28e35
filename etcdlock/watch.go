package etcdlock

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/callbacks"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A folder is what a Store learns of the claims on a key: which claims leave. The
// waiting claims of the Store on the key share the folder. The watches of all folders
// share one stream. The fields except ready and wakes are guarded by Store.mu.
type folder struct {
	key    string
	ready  chan struct{} // closed when etcd has confirmed the watch
	cancel context.CancelFunc
	users  int
	linger *time.Timer     // ends the watch; nil while there are users
	wakes  callbacks.Wakes // by the id of the claim

	// reads is the number of requests on their way that read the queue. left contains
	// the claims that have left meanwhile and since, because the answer may be older.
	reads int
	left  map[string]int64 // revision of the departure, by name

	// since is the revision after which every departure is known. A claim that has not
	// read the queue since then may have missed a departure.
	since int64
}

const (
	// linger is how long a folder stays open for the next waiter, and how long a queue is
	// expected to stay long.
	linger = 5 * time.Second

	// watchLimit is how long etcd may take to confirm a watch. A waiter without a watch
	// polls instead.
	watchLimit = time.Second

	// rewatch is the pause before an ended watch is restarted.
	rewatch = 200 * time.Millisecond

	// streamName is the metadata key that separates watch streams. The client opens a
	// stream per distinct metadata. A stream keeps the login token with which it began.
	// When the token has expired, etcd refuses new watches on the stream, and the
	// client may retry without end. New watches then need a new stream.
	streamName = "holdfast-stream"
)

// Watch implements [driver.Watcher].
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	single := s.singleLocked(c)
	s.mu.Unlock()
	leave := func() {}
	if !single {
		if leave, err = s.watchFolder(ctx, c, wake); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openTurnLocked(c, wake, single, leave), nil
}

// singleLocked reports whether to watch a single claim ahead, not the folder: in a long
// queue, or if the queue is unknown and was long lately.
func (s *Store) singleLocked(dc driver.Claim) bool {
	if c := s.table[dc.ID]; c != nil && c.state == waiting {
		_, single := c.blocker()
		return single
	}
	return s.now().Before(s.crowds[dc.Key].until)
}

// watchFolder is Watch by a watch of the whole folder.
func (s *Store) watchFolder(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	limited, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	f, err := s.openFolder(c.Key)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.ready:
	case <-limited.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closeFolderLocked(f)
		return nil, silence.For(ctx, limited.Err(), watchLimit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	remove := f.wakes.Add(c.ID, wake)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		remove()
		s.closeFolderLocked(f)
	}), nil
}

// openFolder returns the folder of a key, with a further user.
func (s *Store) openFolder(key string) (*folder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	f := s.folders[key]
	if f == nil {
		ctx, cancel := context.WithCancel(s.ctx)
		f = &folder{key: key, ready: make(chan struct{}), cancel: cancel}
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

// closeFolderLocked ends what openFolder began.
func (s *Store) closeFolderLocked(f *folder) {
	if f.users--; f.users > 0 || s.closed {
		return
	}
	if s.now().Before(s.crowds[f.key].until) { // The events of a long queue are many.
		delete(s.folders, f.key)
		f.cancel()
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

// follow learns which claims leave, until ctx ends. The watch begins with future
// events, which etcd sends at once. A watch that begins with past events waits for the
// next tick of a tenth of a second.
func (s *Store) follow(ctx context.Context, f *folder) {
	open := sync.OnceFunc(func() { close(f.ready) })
	s.watch(ctx, s.names.folder(f.key), []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithFilterPut()}, func(rev int64) {
		s.mu.Lock()
		f.since = rev
		s.mu.Unlock()
		f.wakes.WakeAll() // Waiters may have missed a departure.
		open()
	}, func(events []*clientv3.Event) { s.departed(f, events) })
}

// watch watches a key, or all keys with a prefix. When etcd has confirmed the watch, watch calls
// begin with the revision after which the watch begins. For every step of etcd, watch
// calls receive with all events of the step. After the watch has ended, watch restarts it
// and calls begin again. watch returns when ctx has ended.
func (s *Store) watch(ctx context.Context, name string, options []clientv3.OpOption, begin func(rev int64), receive func([]*clientv3.Event)) {
	options = append(options, clientv3.WithCreatedNotify())
	for ctx.Err() == nil {
		stream, created := s.stream.Load(), false
		once, cancel := context.WithCancel(clientv3.WithRequireLeader(
			metadata.AppendToOutgoingContext(ctx, streamName, strconv.FormatInt(stream, 10))))
		late := time.AfterFunc(2*watchLimit, cancel)
		for r := range s.client.Watch(once, name, options...) {
			if s.recognize(&r.Header) != nil {
				break
			}
			if r.Created {
				late.Stop()
				created = true
				begin(r.Header.Revision)
			}
			if len(r.Events) > 0 {
				receive(r.Events)
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

// beginRead begins a read of the queue of a key, and returns the function that ends the
// read.
func (s *Store) beginRead(key string) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[key]
	if f == nil {
		return func() {}
	}
	f.reads++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.reads--; f.reads == 0 {
			f.left = nil
		}
	}
}

// remainingLocked returns the claims of a queue, read at a revision, that are not known to
// have left since.
func (s *Store) remainingLocked(key string, rev int64, q queue) queue {
	rest := make(queue, 0, len(q))
	for _, e := range q {
		if !s.goneSinceLocked(key, e.name, rev) {
			rest = append(rest, e)
		}
	}
	return rest
}

// goneSinceLocked reports whether a claim that was in the queue at a revision is known to
// have left since.
func (s *Store) goneSinceLocked(key, name string, rev int64) bool {
	f := s.folders[key]
	return f != nil && f.left[name] > rev
}

// departed records claims that have left, and wakes the claims that hold now.
func (s *Store) departed(f *folder, events []*clientv3.Event) {
	left := make(map[string]int64, len(events))
	for _, e := range events {
		left[string(e.Kv.Key)] = e.Kv.ModRevision
	}
	woken := make(map[string]driver.Grant)
	s.mu.Lock()
	if f.reads > 0 {
		if f.left == nil {
			f.left = make(map[string]int64)
		}
		maps.Copy(f.left, left)
	}
	for _, id := range f.wakes.Names() {
		if g, wakes := s.removeAheadLocked(f, s.table[id], left); wakes {
			woken[id] = g
		}
	}
	s.mu.Unlock()
	for id, g := range woken {
		f.wakes.Wake(id, g)
	}
}

// removeAheadLocked removes the claims in left, which has the revision of each departure by
// name, from the claims ahead of c. It reports whether c is to be woken: with a grant if c
// holds now, without a grant to request again.
func (s *Store) removeAheadLocked(f *folder, c *claim, left map[string]int64) (g driver.Grant, wakes bool) {
	switch {
	case c == nil || c.state != waiting:
		return g, false
	case left[c.name] > c.rev:
		c.state, c.ahead = asking, nil // The claim has lost its place.
		return g, true
	case !c.ahead.without(left) || !c.ahead.fits(c.Weight, c.Limit):
		return g, false
	case c.unblocked() && c.seen >= f.since && c.lease.lastsLocked(s.now()):
		c.hold()
		return s.pushedLocked(c), true
	}
	return g, true
}

// pushedLocked returns the grant of a claim that holds now. The grant stands until the
// owner confirms it, but no longer than Alive.
func (s *Store) pushedLocked(c *claim) driver.Grant {
	until := s.now().Add(c.alive())
	if end := c.lease.end(); end.Before(until) {
		until = end
	}
	s.standLocked(c, until)
	return c.granted(until.Sub(c.asked))
}
