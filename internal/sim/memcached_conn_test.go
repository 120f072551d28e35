package sim

import (
	"bytes"
	"context"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// A stretch is a connection. One piece at a time is under way on it.
type stretch struct {
	m    *memcached
	link *Link
	run  int
	ctx  context.Context // ends when the connection is closed
	end  context.CancelFunc

	mu       sync.Mutex
	changed  chan struct{} // closed and made anew at each change
	in       bytes.Buffer
	err      error // after what is in
	deadline time.Time
}

func (m *memcached) dial(ctx context.Context, l *Link) (net.Conn, error) {
	run, err := Send(ctx, l, "dial", "", "", func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.run
	})
	if err != nil {
		return nil, err
	}
	c := &stretch{m: m, link: l, run: run, changed: make(chan struct{})}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// change changes the connection and wakes who reads.
func (c *stretch) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Write implements [net.Conn]. It does not wait for the piece to arrive.
func (c *stretch) Write(piece []byte) (int, error) {
	c.mu.Lock()
	err := c.expiredLocked(c.err)
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	text := string(piece)
	call, key := about(text)
	c.link.p.w.flight.Add(1)
	go func() {
		defer c.link.p.w.flight.Done()
		replies, err := Send(c.ctx, c.link, call, key, "", func() replies { return c.serve(text) })
		if call == "add" && strings.HasPrefix(string(replies), "STORED") {
			c.link.granted(key)
		}
		c.change(func() {
			c.in.WriteString(string(replies))
			switch {
			case err != nil:
				c.err = err
			case replies == "":
				c.err = io.EOF
			}
		})
	}()
	return len(piece), nil
}

// about says for the trace what a piece does, and to which key.
func about(piece string) (call, key string) {
	for line := range strings.SplitSeq(piece, "\r\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "{") {
			continue
		}
		if name := words[min(1, len(words)-1)]; strings.Contains(name, ":=") {
			call = words[0]
			_, key, _ = strings.Cut(name, ":=")
			return call, key
		}
		if call == "" {
			call = words[0]
		}
	}
	return call, ""
}

// replies are what the server answers to a piece.
type replies string

func (r replies) String() string {
	return strings.ReplaceAll(strings.TrimSpace(string(r)), "\r\n", " | ")
}

// Read implements [net.Conn].
func (c *stretch) Read(b []byte) (int, error) {
	for {
		c.mu.Lock()
		if c.in.Len() > 0 {
			defer c.mu.Unlock()
			return c.in.Read(b)
		}
		err, left, changed := c.expiredLocked(c.err), time.Duration(math.MaxInt64), c.changed
		if !c.deadline.IsZero() {
			left = time.Until(c.deadline)
		}
		c.mu.Unlock()
		if err != nil {
			return 0, err
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// expiredLocked is why the connection cannot be used now.
func (c *stretch) expiredLocked(err error) error {
	switch {
	case c.ctx.Err() != nil:
		return net.ErrClosed
	case err == nil && !c.deadline.IsZero() && !time.Now().Before(c.deadline):
		return os.ErrDeadlineExceeded
	}
	return err
}

// Close implements [net.Conn].
func (c *stretch) Close() error {
	c.change(c.end)
	return nil
}

// SetDeadline implements [net.Conn].
func (c *stretch) SetDeadline(t time.Time) error {
	c.change(func() { c.deadline = t })
	return nil
}

func (c *stretch) SetReadDeadline(t time.Time) error  { return c.SetDeadline(t) }
func (c *stretch) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }
func (c *stretch) LocalAddr() net.Addr                { return memcachedAddr(c.link.p.Name) }
func (c *stretch) RemoteAddr() net.Addr               { return memcachedAddr("m:11211") }

type memcachedAddr string

func (memcachedAddr) Network() string  { return "tcp" }
func (a memcachedAddr) String() string { return string(a) }
