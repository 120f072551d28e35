package natslock

import (
	"cmp"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// Options say how a Store uses NATS. nil means the defaults.
type Options struct {
	// Stream is the name of the stream, and the first word of its subjects: 1 to 64 letters,
	// digits, - and _. Empty means DefaultStream. Stores with the same stream share their locks.
	Stream string

	// Replicas is how many servers keep the stream that Create makes: 1, 3 or 5. 0 means 1.
	Replicas int

	// Synced says that all servers run with sync_interval: always. Check cannot see the setting,
	// and warns unless Synced is true.
	Synced bool
}

// A Store keeps claims in a stream. Make a Store with New.
type Store struct {
	*caslock.Store
	register *register
	opts     Options

	close    func() // of a connection of the Store's own
	warnings []string
	over     chan struct{}
	once     sync.Once
	all      sync.WaitGroup
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Creator   = (*Store)(nil)
)

// New returns a Store over the caller's connection, which the caller closes after the Store.
// New does no I/O. Bad options are [driver.ErrInvalid].
func New(conn *nats.Conn, opts *Options) (*Store, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Stream = cmp.Or(o.Stream, DefaultStream)
	o.Replicas = cmp.Or(o.Replicas, 1)
	if err := errors.Join(checkStream(o.Stream), checkReplicas(o.Replicas)); err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	r := &register{conn: conn, js: js, stream: o.Stream, watches: make(map[*watch]struct{})}
	s := &Store{Store: caslock.New(r, nil), register: r, opts: o, over: make(chan struct{})}
	s.all.Go(s.follow)
	return s, nil
}

// follow tells the watches when the connection is back.
func (s *Store) follow() {
	connected := s.register.conn.StatusChanged(nats.CONNECTED)
	defer s.register.conn.RemoveStatusListener(connected)
	for {
		select {
		case _, open := <-connected:
			if !open {
				return
			}
			s.register.missed()
		case <-s.over:
			return
		}
	}
}

// Close ends the watches, and the connection if Open has made the connection. Claims stand
// until their TTL ends.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		err = s.Store.Close()
		close(s.over)
		s.all.Wait()
		if s.close != nil {
			s.close()
		}
	})
	return err
}
