package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memcachelock"
)

var memcacheds = &backend{
	make:    newMemcached,
	ttls:    []time.Duration{time.Second, 3 * time.Second, 10 * time.Second},
	least:   time.Second,
	kinds:   []Kind{Exclusive, Exclusive, Shared, Slots},
	atLeast: 2,
	manner:  []func(time.Duration) Faults{quiet, stream(lossy), stream(slow), stream(hostile)},
	cuts:    3,
	crowds:  []int{1, 1, 2, 3},
}

// TestMemcached runs package memcachelock over a server that compares and swaps: registers
// of one key each, with a clock that shows seconds.
func TestMemcached(t *testing.T) { worlds.Run(t, 0.1, 4, memcacheds.explore) }

// A memcached is a server. Its clock shows seconds, and the second before for a moment.
type memcached struct {
	w     *World
	clock drift
	late  time.Duration // by how much its clock looks at the time too late

	mu    sync.Mutex
	born  time.Time // of the run
	run   int
	cas   uint64
	items map[string]item
}

// An item is what the server keeps under a name.
type item struct {
	value string
	cas   uint64
	ends  int64 // in seconds of the server's clock
}

func newMemcached(w *World) Store {
	r := w.Rand("memcached")
	w.Judge.grain = 4 * time.Second // The store keeps a claim for three seconds of the server longer.
	return &memcached{
		w: w, clock: newDrift(r), late: upto(r, time.Second),
		born: time.Now().Add(-time.Hour), items: make(map[string]item),
	}
}

// calm implements [calming]. Waiters poll, and nobody knows who came first.
func (m *memcached) calm() (idle, place time.Duration) { return 600 * time.Millisecond, 0 }

// Connect implements [Store].
func (m *memcached) Connect(p *Process) driver.Store {
	l := p.Link("store")
	return must.Get(memcachelock.New([]string{"m"}, &memcachelock.Options{
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return m.dial(ctx, l) },
	}))
}

// Left implements [Store]. A mark against a late call may be left in a record.
func (m *memcached) Left() (keys []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.items)) {
		key, ours := strings.CutPrefix(name, memcachelock.DefaultPrefix+"=")
		if !ours || !m.live(name) {
			continue
		}
		var record struct{ Held []struct{ Until int64 } }
		if err := json.Unmarshal([]byte(m.items[name].value), &record); err != nil {
			return nil, err
		}
		for _, e := range record.Held {
			if e.Until == 0 || e.Until > 1000*m.now() {
				keys = append(keys, key)
			}
		}
	}
	return keys, nil
}

// Close implements [Store].
func (m *memcached) Close() error { return nil }

// fail restarts the server, which forgets all. Its tokens go on.
func (m *memcached) fail(_ *rand.Rand, ttl time.Duration) bool {
	m.w.Judge.Forgot(2*ttl + time.Second)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.w.Trace.add(Event{Step: Fault, Call: "restart"}, nil)
	m.run, m.cas, m.born, m.items = m.run+1, 0, time.Now(), make(map[string]item)
	return true
}

// now is the server's clock in seconds since 1970.
func (m *memcached) now() int64 { return m.at(time.Now()) }

func (m *memcached) at(t time.Time) int64 { return m.clock.at(t.Add(-m.late)).Unix() }

// live reports whether there is an item, and forgets one that has ended.
func (m *memcached) live(name string) bool {
	i, ok := m.items[name]
	if ok && i.ends <= m.now() {
		delete(m.items, name)
		ok = false
	}
	return ok
}

// put keeps an item for so long, which is a time since 1970 if it is long.
func (m *memcached) put(name, value string, expiry int64) {
	if expiry <= 30*24*60*60 {
		expiry += m.now()
	}
	m.cas++
	m.items[name] = item{value, m.cas, expiry}
}

// serve carries out the commands of a piece, with those of others in between, and returns
// the replies: none if the server has restarted since the connection was made.
func (c *stretch) serve(piece string) replies {
	var out strings.Builder
	r := c.link.rand("serve", piece)
	delay := c.link.faults().Delay
	gap := pick(r, 0, 0, delay, 5*delay)
	for piece != "" {
		var line string
		line, piece, _ = strings.Cut(piece, "\r\n")
		words := strings.Fields(line)
		var value string
		if size := valueSize(words); size >= 0 {
			value, piece = piece[:size], piece[size+len("\r\n"):]
		}
		if !c.m.command(&out, c.run, words, value) {
			return ""
		}
		time.Sleep(upto(r, gap))
	}
	return replies(out.String())
}

// valueSize is how long the value is that follows a command, -1 if none does.
func valueSize(words []string) int {
	switch words[0] {
	case "add", "cas", "set":
		return int(number(words[4]))
	case "ms":
		return int(number(words[2]))
	}
	return -1
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("memcached: " + err.Error())
	}
	return n
}

// command carries out one command, unless it is for a run that has ended.
func (m *memcached) command(out *strings.Builder, run int, words []string, value string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if run != m.run {
		return false
	}
	m.answer(out, words, value)
	return true
}

func (m *memcached) answer(out *strings.Builder, words []string, value string) {
	if words[0] == "stats" {
		const head = 2 // A server says that it has run for 2 seconds when it begins.
		up := m.now() - m.at(m.born) + head
		fmt.Fprintf(out, "STAT pid %d\r\nSTAT uptime %d\r\nSTAT time %d\r\nEND\r\n", m.run+1, up, m.now())
		return
	}
	name := words[1]
	live := m.live(name)
	have := m.items[name]
	var expiry, cas int64
	for _, flag := range words[2:] {
		switch flag[0] {
		case 'T':
			expiry = number(flag[1:])
		case 'C':
			cas = number(flag[1:])
		}
	}
	switch words[0] {
	case "mg":
		switch {
		case !live:
			out.WriteString("EN\r\n")
		case slices.Contains(words, "v"):
			fmt.Fprintf(out, "VA %d c%d t%d\r\n%s\r\n", len(have.value), have.cas, have.ends-m.now(), have.value)
		case slices.Contains(words, "t"):
			fmt.Fprintf(out, "HD t%d\r\n", have.ends-m.now())
		default:
			out.WriteString("HD\r\n")
		}
	case "add":
		if live {
			out.WriteString("NOT_STORED\r\n")
			return
		}
		m.put(name, value, number(words[3]))
		out.WriteString("STORED\r\n")
	case "cas":
		switch {
		case !live:
			out.WriteString("NOT_FOUND\r\n")
		case have.cas != uint64(number(words[5])):
			out.WriteString("EXISTS\r\n")
		default:
			m.put(name, value, number(words[3]))
			out.WriteString("STORED\r\n")
		}
	case "set":
		m.put(name, value, number(words[3]))
		out.WriteString("STORED\r\n")
	case "md":
		switch {
		case !live:
			out.WriteString("NF\r\n")
		case cas != 0 && have.cas != uint64(cas):
			out.WriteString("EX\r\n")
		default:
			delete(m.items, name)
			out.WriteString("HD\r\n")
		}
	case "ms":
		switch {
		case cas != 0 && !live:
			out.WriteString("NF\r\n")
		case cas != 0 && have.cas != uint64(cas):
			out.WriteString("EX\r\n")
		case live && slices.Contains(words, "ME"):
			out.WriteString("NS\r\n")
		case slices.Contains(words, "c"):
			m.put(name, value, expiry)
			fmt.Fprintf(out, "HD c%d\r\n", m.cas)
		default:
			m.put(name, value, expiry)
			out.WriteString("HD\r\n")
		}
	default:
		out.WriteString("ERROR\r\n")
	}
}
