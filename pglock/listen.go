package pglock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

var (
	errClosed = errors.New("the store is closed")
	errPooled = errors.New("a pooler stands before the server and does not pass notifications on; name the server itself as the place to listen at")
)

// A listener receives the messages for this process, on its own connection. The listener
// connects at first need, and reconnects after every interruption.
type listener struct {
	config  *pgx.ConnConfig
	before  beforeConnect
	channel string

	ctx  context.Context // ends with close
	stop context.CancelFunc
	runs sync.WaitGroup

	mu        sync.Mutex
	started   bool
	ready     bool          // the server has confirmed
	confirmed bool          // the server has confirmed at least once
	err       error         // why the listener is not ready, from the last try
	tried     chan struct{} // closed after the first try
}

func newListener(config *pgx.ConnConfig, before beforeConnect) *listener {
	l := &listener{
		config:  config.Copy(),
		before:  before,
		channel: "holdfast_" + strings.ToLower(rand.Text()),
		tried:   make(chan struct{}),
	}
	// A host that does not answer leaves time for the next host.
	l.config.ConnectTimeout = cmp.Or(l.config.ConnectTimeout, dialLimit)
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// To implements sqlstore.Listener. To returns the channel also while connecting, or after
// an interruption, because the listener will listen again.
func (l *listener) To() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.confirmed && l.err != nil {
		return ""
	}
	return l.channel
}

// Listen implements sqlstore.Listener.
func (l *listener) Listen(ctx context.Context, receive func(string) bool) error {
	l.mu.Lock()
	if !l.started && l.ctx.Err() == nil {
		l.started = true
		l.runs.Go(func() { l.run(receive) })
	}
	l.mu.Unlock()
	select {
	case <-l.tried:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ctx.Done():
		return errClosed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ready {
		return l.err
	}
	return nil
}

func (l *listener) Close() error {
	l.stop()
	l.runs.Wait()
	return nil
}

const (
	dialLimit  = 5 * time.Second // for one host
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second

	// A connection that is silent for longestSilence is pinged; answer limits the time
	// for the reply.
	longestSilence = 5 * time.Second
	answer         = 2 * time.Second
)

func (l *listener) run(receive func(string) bool) {
	for pause := firstPause; l.ctx.Err() == nil; pause = min(2*pause, lastPause) {
		began := time.Now()
		err := l.session(receive)
		l.setReady(false, err)
		if errors.Is(err, errPooled) {
			pause = lastPause * 30 // A pooler rarely comes or goes.
		} else if time.Since(began) > lastPause {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			timer.Stop()
		}
	}
}

// setReady records whether the listener is ready, and why not.
func (l *listener) setReady(ready bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready, l.err, l.confirmed = ready, err, l.confirmed || ready
	select {
	case <-l.tried:
	default:
		close(l.tried)
	}
}

// session listens until the connection ends, and returns the reason.
func (l *listener) session(receive func(string) bool) error {
	conn, err := l.connect()
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), answer)
		defer cancel()
		conn.Close(ctx)
	}()
	l.setReady(true, nil)
	receive("") // Earlier messages are lost.
	for {
		message, err := next(l.ctx, conn)
		if err != nil {
			return err
		}
		if message != "" {
			receive(message)
		}
	}
}

func (l *listener) connect() (*pgx.Conn, error) {
	hosts := time.Duration(1 + len(l.config.Fallbacks))
	ctx, cancel := context.WithTimeout(l.ctx, hosts*l.config.ConnectTimeout+answer)
	defer cancel()
	config, err := l.before.copy(ctx, l.config)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	between, err := pooled(ctx, conn)
	if err == nil && between {
		err = errPooled
	}
	if err == nil {
		_, err = conn.Exec(ctx, "LISTEN "+l.channel, pgx.QueryExecModeExec)
	}
	if err != nil {
		conn.Close(ctx)
		return nil, fmt.Errorf("listen for wake-ups: %w", err)
	}
	return conn, nil
}

// next returns the next message, or "" if no message came for a while and the server
// still answers.
func next(ctx context.Context, conn *pgx.Conn) (string, error) {
	quiet, cancel := context.WithTimeout(ctx, longestSilence)
	defer cancel()
	n, err := conn.WaitForNotification(quiet)
	if err == nil {
		return n.Payload, nil
	}
	if ctx.Err() != nil || quiet.Err() == nil || conn.IsClosed() {
		return "", err
	}
	alive, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return "", conn.Ping(alive)
}
