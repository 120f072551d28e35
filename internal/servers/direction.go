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
	touched int               // pieces that were held back, delayed or dropped
	robbed  map[*link]bool    // connections that have lost data
	changed chan struct{}     // closed, and replaced, when the settings change
}

func newDirection() *Direction {
	return &Direction{changed: make(chan struct{}), robbed: make(map[*link]bool)}
}

// Delay makes everything arrive later by that much; 0 means at once. Delay does not limit
// the amount of data on the way.
func (d *Direction) Delay(by time.Duration) { d.change(func() { d.delay = by }) }

// Hold holds everything back while on.
func (d *Direction) Hold(on bool) { d.change(func() { d.hold = on }) }

// Drop drops everything while on. When Drop is switched off, connections that have lost
// data are reset: TCP never loses bytes and goes on.
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

// Dropped returns how many bytes were dropped so far.
func (d *Direction) Dropped() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dropped
}

// Touched returns how many pieces were held back, delayed or dropped so far. A piece is
// the data of one read.
func (d *Direction) Touched() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.touched
}

// Replace replaces old by text in all data from now on. text must have the length of old.
// An occurrence must lie within one read.
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

// A piece is the data of one read. An empty piece is the end of the stream, or reports
// that the sender has broken off.
type piece struct {
	bytes   []byte
	broken  bool
	came    time.Time
	touched bool
}

// pass forwards the data of one side until the side or the link ends. back is the opposite
// direction: back carries the news that the receiver has broken off.
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

// admit waits until a piece is due, and reports whether to forward the piece.
func (d *Direction) admit(p *piece, l *link) bool {
	for {
		select {
		case <-l.ended: // A broken connection reports only that it is broken.
			return false
		default:
		}
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
