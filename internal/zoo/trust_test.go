package zoo

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// enough is how long a test waits for what happens soon on a healthy machine.
const enough = 60 * time.Second

var everybody = []ACL{{All, "world", "anyone"}}

// quiet are events that nobody listens to.
func quiet() Events {
	return Events{Changed: func(string, bool) {}, Down: func() {}, Up: func() {}, Over: func(error) {}}
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), enough)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, timeout time.Duration, events Events, addrs ...string) *Session {
	t.Helper()
	return openAs(t, Config{Servers: addrs, Timeout: timeout}, events)
}

// openAs opens a session, also if the server is slow.
func openAs(t *testing.T, config Config, events Events) *Session {
	t.Helper()
	s := servers.Insist(t, func(ctx context.Context) (*Session, error) { return Open(ctx, config, boottime.New(), events) })
	t.Cleanup(s.Close)
	return s
}

// ask sends one request until it is answered, over as many connections as it takes.
func ask(t *testing.T, s *Session, r Request) {
	t.Helper()
	tried := false // with unknown success
	for ctx := bounded(t); ; tried = true {
		calls, err := s.Send(ctx, r)
		if err == nil {
			err = calls[0].Wait(ctx)
		}
		switch {
		case err == nil || tried && errors.Is(err, NodeExists):
			return
		case !errors.Is(err, ErrUnknown):
			t.Fatal(err)
		}
	}
}

// TestFollowerWithoutLeader cuts a follower off with a client on it. The leader ends the
// session and removes its node; the session of this package has stopped trusting itself by
// then, although the follower has gone on answering. A client that takes every answer for a
// sign of life would have been wrong.
func TestFollowerWithoutLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s: make prove")
	}
	t.Parallel()
	const timeout = 6 * time.Second
	e := servers.StartEnsemble(t, "forceSync=no", "syncLimit=60") // a quarter of a minute
	leader, follower := e.Leader(), e.Followers()[0]

	type end struct {
		path string
		at   time.Time
	}
	ends := make(chan end, 2)
	events := quiet()
	events.Changed = func(path string, _ bool) { ends <- end{path, time.Now()} }
	observer := open(t, enough, events, leader.Addr())

	over := make(chan bool, 1)
	events = quiet()
	events.Over = func(error) { over <- true }
	s := open(t, timeout, events, follower.Addr())
	ask(t, s, Create("/ours", "", everybody, Member))
	ask(t, observer, Watch("/ours"))

	naive := naively(t, follower.Addr(), timeout)
	ask(t, observer, Watch("/naive"))

	e.CutOff(follower, true)
	gone := make(map[string]time.Time)
	for range 2 {
		last := <-ends
		gone[last.path] = last.at
	}
	<-over
	if ended := time.Now().Add(s.Trust() - s.clock.Now()); !ended.Before(gone["/ours"]) {
		t.Errorf("the session was trusted until %v after its node was gone", ended.Sub(gone["/ours"]))
	}
	e.CutOff(follower, false)
	if last := <-naive; !last.Add(timeout * 2 / 3).After(gone["/naive"]) {
		unproved.Logf(t, "the last answer was to what was sent %v before the node was gone", gone["/naive"].Sub(last))
	}
}

// naively makes a node and reads it again and again over one connection, until the
// follower does not answer any more or says that the session is over. It tells when
// the last read was sent that was answered.
func naively(t *testing.T, addr string, timeout time.Duration) <-chan time.Time {
	t.Helper()
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	c := newConn(raw, func(string, bool) {})
	if _, err := c.greet(context.Background(), greeting{timeout: timeout, password: nobody}, 0, nil); err != nil {
		t.Fatal(err)
	}
	c.start()
	read := func(r Request) error {
		call := &Call{op: r.op, done: make(chan struct{})}
		if !c.queue([]*Call{call}, []Request{r}) {
			return ErrUnknown
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return call.Wait(ctx)
	}
	if err := read(Create("/naive", "", everybody, Member)); err != nil {
		t.Fatal(err)
	}
	last := make(chan time.Time, 1)
	go func() {
		answered := time.Now()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			sent := time.Now()
			if read(Exists("/naive")) != nil {
				break
			}
			answered = sent
		}
		last <- answered
	}()
	return last
}

// TestProveLooksAgain waits for proof that needs more than one sync. It asks again
// within a few hundredths of a second, however long the timeout is, and no more often.
func TestProveLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 120 * time.Second
		client, server := net.Pipe()
		s := &Session{
			clock:    boottime.Simulated(func() time.Duration { return 0 }),
			closed:   t.Context(),
			greeting: greeting{timeout: timeout, id: 1},
			conn:     newConn(client, nil),
		}
		const most = 2 * timeout / brief
		asked := make(chan int)
		go func() { asked <- answer(server, int(most)) }()
		s.conn.start()
		err := s.Prove(t.Context(), s.Trust()+1)
		took := s.clock.Now()
		s.conn.fail(ErrClosed)
		<-s.conn.ended
		soonest := time.Duration(half * float64(timeout))
		if err != nil || took < soonest || took > soonest+4*brief {
			t.Errorf("it took %v until there was proof, %v; want %v or a little more", took, err, soonest)
		}
		if n := time.Duration(<-asked); n > took/brief+2 {
			t.Errorf("it asked %d times in %v", n, took)
		}
	})
}

// answer says yes to whatever comes over a connection, at most so many times, and
// returns how often it did.
func answer(c net.Conn, most int) (n int) {
	defer c.Close()
	for ; n < most; n++ {
		var head [4]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			break
		}
		request := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(c, request); err != nil {
			break
		}
		xid := int32(binary.BigEndian.Uint32(request))
		if _, err := io.WriteString(c, bytes(16, xid, 0, 1, 0)); err != nil {
			break
		}
	}
	return n
}
