package servers

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// A Direction is one of the two ways through a proxy.
type Direction struct {
	mu      sync.Mutex
	delay   time.Duration
	hold    bool
	drop    bool
	lies    *strings.Replacer // nil for none
	dropped int               // bytes
	touched int               // pieces that were held back, delayed or thrown away
	robbed  map[*link]bool    // connections that have lost some of them
	changed chan struct{}     // closed, and replaced, when an order changes
}

func newDirection() *Direction {
	return &Direction{changed: make(chan struct{}), robbed: make(map[*link]bool)}
}

// Delay lets everything arrive later by that much, 0 for at once. It does not
// limit how much is on its way.
func (d *Direction) Delay(by time.Duration) { d.change(func() { d.delay = by }) }

// Hold keeps everything back while on.
func (d *Direction) Hold(on bool) { d.change(func() { d.hold = on }) }

// Drop throws everything away while on. When it is switched off, connections
// that have lost something are reset, since TCP never loses bytes and goes on.
func (d *Direction) Drop(on bool) {
	var robbed map[*link]bool
	d.change(func() {
		d.drop = on
		if !on {
			robbed, d.robbed = d.robbed, make(map[*link]bool)
		}
	})
	for l := range robbed {
		l.reset()
	}
}

// Dropped returns how many bytes were thrown away so far.
func (d *Direction) Dropped() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dropped
}

// Touched returns how many pieces, each of what was read at once, were held back,
// delayed or thrown away so far.
func (d *Direction) Touched() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.touched
}

// Replace puts text in the place of another of the same length, in whatever is
// sent at once from now on.
func (d *Direction) Replace(old, text string) {
	d.change(func() { d.lies = strings.NewReplacer(old, text) })
}

func (d *Direction) change(set func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set()
	close(d.changed)
	d.changed = make(chan struct{})
}

// A piece is what was read at once. An empty one is the end of the stream, or says
// that its side has broken off.
type piece struct {
	bytes   []byte
	broken  bool
	came    time.Time
	touched bool
}

// pass passes on what one side sends until it ends, or the link does. back is the
// other way, which the news takes that a side has broken off to which this writes.
func (d *Direction) pass(l *link, from, to *net.TCPConn, back *Direction) {
	queue := make(chan piece, 1024)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(queue)
		read(from, queue, l.ended)
	})
	for p := range queue {
		switch {
		case !d.admit(&p, l):
		case p.broken, write(to, p) != nil && back.admit(&piece{came: time.Now()}, l):
			l.reset()
		}
	}
	reading.Wait()
}

func read(from *net.TCPConn, queue chan<- piece, ended <-chan struct{}) {
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		broken := err != nil && !errors.Is(err, io.EOF)
		select {
		case queue <- piece{bytes: buffer[:n], broken: broken, came: time.Now()}:
		case <-ended:
			return
		}
		if err != nil {
			return
		}
	}
}

func write(to *net.TCPConn, p piece) error {
	if len(p.bytes) == 0 {
		return to.CloseWrite()
	}
	_, err := to.Write(p.bytes)
	return err
}

// admit waits until it is time for a piece, and reports whether to pass it on.
func (d *Direction) admit(p *piece, l *link) bool {
	for {
		d.mu.Lock()
		hold, rest, changed, lies := d.hold, time.Until(p.came.Add(d.delay)), d.changed, d.lies
		if !p.touched && (d.drop || hold || rest > 0) {
			p.touched = true
			d.touched++
		}
		if d.drop {
			d.dropped += len(p.bytes)
			d.robbed[l] = true
			d.mu.Unlock()
			return false
		}
		d.mu.Unlock()
		if !hold && rest <= 0 {
			if lies != nil {
				p.bytes = []byte(lies.Replace(string(p.bytes)))
			}
			return true
		}
		var due <-chan time.Time
		if !hold {
			due = time.After(rest)
		}
		select {
		case <-due:
		case <-changed:
		case <-l.ended:
			return false
		}
	}
}
