package zoo

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
)

var server *servers.ZooKeeper // for the tests that do it no harm; their nodes differ

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { server = servers.StartZooKeeper(tb, "forceSync=no") }))
}

// bytes are numbers as a server sends them.
func bytes(numbers ...int32) string {
	var w writer
	for _, n := range numbers {
		w.int(n)
	}
	return string(w.buf)
}

// TestOtherTerms reconnects to a server that has other bounds for the timeout of a
// session. The session ends, and tells why: its owner counts on what was granted.
func TestOtherTerms(t *testing.T) {
	t.Parallel()
	for what, timeout := range map[string]int32{"shorter": 2000, "longer": 50_000} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			proxy := servers.StartProxy(t, server.Addr())
			over := make(chan error, 1)
			events := quiet()
			events.Over = func(err error) { over <- err }
			const granted = 40_000
			s := open(t, granted*time.Millisecond, events, proxy.Addr())
			if got := s.Timeout(); got != granted*time.Millisecond {
				t.Fatalf("the timeout is %v", got)
			}
			proxy.Replies.Replace(bytes(0, granted), bytes(0, timeout))
			proxy.Reset()
			if err := <-over; !errors.Is(err, errAltered) {
				t.Errorf("the session ended with: %v", err)
			}
		})
	}
}

// TestRefusedAgain has a server refuse the password of a session each time that it
// reconnects. It does not ask without a pause.
func TestRefusedAgain(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	over := make(chan error, 1)
	events := quiet()
	events.Over = func(err error) { over <- err }
	config := Config{Servers: []string{proxy.Addr()}, Timeout: 10 * time.Second, Auth: []Auth{{"digest", "a:b"}}}
	openAs(t, config, events)
	proxy.Replies.Replace(bytes(xidAuth, 0, 0, 0), bytes(xidAuth, 0, 0, int32(AuthFailed)))
	before := proxy.Accepted()
	proxy.Reset()
	if err := <-over; !errors.Is(err, errSilent) {
		t.Errorf("the session ended with: %v", err)
	}
	if asked := proxy.Accepted() - before; asked < 2 || asked > 500 {
		t.Errorf("the server was asked over %d connections until the session was over", asked)
	}
}

// TestForeignAnswer gets the answer to the making of another node. It is taken for
// none, and the connection ends.
func TestForeignAnswer(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := open(t, enough, quiet(), proxy.Addr())
	proxy.Replies.Replace("/right", "/wrong")
	calls, err := s.Send(bounded(t), Create("/right", "", everybody, Ephemeral))
	if err != nil {
		t.Fatal(err)
	}
	if err := calls[0].Wait(bounded(t)); !errors.Is(err, ErrUnknown) || !errors.Is(err, errForeign) {
		path, _ := calls[0].Made()
		t.Errorf("made %s: %v", path, err)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	var w writer
	w.text("/a/b-1")
	w.long(1)
	for len(w.buf) < 10+68 {
		w.bool(false)
	}
	create := &Call{op: opCreate, path: "/a/b-"}
	if !create.complete(w.buf) {
		t.Fatal("an answer is not complete")
	}
	for n := range w.buf {
		if create.complete(w.buf[:n]) || (&Call{op: opGet}).complete(w.buf[:n]) {
			t.Errorf("%d bytes of %d are complete", n, len(w.buf))
		}
	}
	if (&Call{op: opExists}).complete(nil) || (&Call{op: opChildren}).complete(nil) || (&Call{op: opCreate}).complete(make([]byte, 72)) {
		t.Error("nothing is complete")
	}
}

// TestCreateAll makes a node together with those above it, all or none.
func TestCreateAll(t *testing.T) {
	t.Parallel()
	s := open(t, enough, quiet(), server.Addr())
	for _, want := range []error{nil, NodeExists} {
		together := CreateAll([]string{"/above", "/above/it"}, "/above/it/one-", "", everybody, Ephemeral)
		calls, err := s.Send(bounded(t), together, Exists("/above"), Exists("/above/it"), List("/above/it"))
		if err != nil {
			t.Fatal(err)
		}
		if err := calls[0].Wait(bounded(t)); !errors.Is(err, want) {
			t.Errorf("made all: %v, want %v", err, want)
		}
		for _, call := range calls[1:] {
			if err := call.Wait(bounded(t)); err != nil {
				t.Fatal(err)
			}
		}
		if names := calls[3].Children(); len(names) != 1 {
			t.Errorf("%q are there, want one", names)
		}
		path, zxid := calls[0].Made()
		above, it := calls[1].Stat(), calls[2].Stat()
		if want == nil && (path != "/above/it/one-0000000000" || zxid != above.Czxid || zxid != it.Czxid || it.Owner == s.ID()) {
			t.Errorf("made %s by %d, below %+v and %+v", path, zxid, above, it)
		}
	}
}

// TestOthersCreated gets the answer to the making of other nodes.
func TestOthersCreated(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, server.Addr())
	s := open(t, enough, quiet(), proxy.Addr())
	proxy.Replies.Replace("/their/one", "/their/two")
	calls, err := s.Send(bounded(t), CreateAll([]string{"/their"}, "/their/one", "", everybody, Member))
	if err != nil {
		t.Fatal(err)
	}
	if err := calls[0].Wait(bounded(t)); !errors.Is(err, errForeign) {
		path, _ := calls[0].Made()
		t.Errorf("made %s: %v", path, err)
	}
}

// TestAnnounced announces a large message and sends none. No memory is taken for it.
func TestAnnounced(t *testing.T) {
	client, other := net.Pipe()
	go func() {
		_, _ = other.Write([]byte(bytes(maxMessage))) // the error shows at the reader
		other.Close()
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := newConn(client, nil).read(maxMessage); err == nil {
		t.Error("read what was not sent")
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > maxMessage/8 {
		t.Errorf("took %d bytes", taken)
	}
}

// TestReadLong reads a message of several steps.
func TestReadLong(t *testing.T) {
	t.Parallel()
	client, other := net.Pipe()
	text := strings.Repeat("0123456789", step/4)
	go func() {
		_, _ = other.Write([]byte(bytes(int32(len(text))) + text)) // the error shows at the reader
		other.Close()
	}()
	if got, err := newConn(client, nil).read(maxMessage); err != nil || string(got) != text {
		t.Errorf("read %d bytes of %d, %v", len(got), len(text), err)
	}
}

// TestSendTooLate sends nothing for a context that has ended.
func TestSendTooLate(t *testing.T) {
	t.Parallel()
	s := open(t, enough, quiet(), server.Addr())
	ctx, cancel := context.WithCancel(bounded(t))
	cancel()
	if calls, err := s.Send(ctx, Sync("/")); calls != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("sent: %v", err)
	}
}

// TestOtherServer loses the connection to one server, while the next has a smaller
// maximum for the timeout of a session. Asked to go on with the session, that would
// make it shorter; its answers are lost, though, so nobody would know. The session is
// over no later than it stops being trusted.
func TestOtherServer(t *testing.T) {
	t.Parallel()
	const granted, less = 16_411, 1000
	first, second := servers.StartProxy(t, server.Addr()), servers.StartProxy(t, server.Addr())
	second.Refuse(true)
	over := make(chan error, 1)
	events := quiet()
	events.Over = func(err error) { over <- err }
	s := open(t, granted*time.Millisecond, events, first.Addr(), second.Addr())
	ask(t, s, Create("/ours", "", everybody, Member))

	gone := make(chan string, 1)
	events = quiet()
	events.Changed = func(path string, _ bool) { gone <- path }
	ask(t, open(t, enough, events, server.Addr()), Watch("/ours"))

	second.Requests.Replace(bytes(granted), bytes(less))
	second.Replies.Drop(true)
	second.Refuse(false)
	first.Refuse(true)
	first.Reset()
	servers.Until(t, "an answer of the other server, or the end of the session", func() bool {
		return second.Replies.Dropped() > 0 || len(over) > 0
	})
	second.Refuse(true) // or it would be asked again and again, for a little longer each time
	select {
	case <-over:
	case <-gone:
		if left := s.Trust() - s.clock.Now(); left > 0 {
			t.Errorf("the node is gone, and the session is still trusted for %v", left)
		}
	}
}

// TestServersAreCompared goes on with a session over another server, but not over one
// with other bounds.
func TestServersAreCompared(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]struct {
		granted, timeout int32
		last             error
	}{"other bounds": {16_411, 1000, errUnlike}, "the same": {56_411, 56_411, nil}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := server
			if want.last == nil {
				z = servers.StartZooKeeper(t, "forceSync=no") // to count the sessions
			}
			first, second := servers.StartProxy(t, z.Addr()), servers.StartProxy(t, z.Addr())
			second.Refuse(true)
			ends, up := make(chan error, 1), make(chan bool, 1)
			events := quiet()
			events.Over = func(err error) { ends <- err }
			events.Up = func() { up <- true }
			s := open(t, time.Duration(want.granted)*time.Millisecond, events, first.Addr(), second.Addr())
			id := s.ID()
			second.Requests.Replace(bytes(want.granted), bytes(want.timeout))
			second.Refuse(false)
			first.Refuse(true)
			first.Reset()
			if want.last != nil {
				servers.Until(t, "the refusal of the other server, or the end of the session", func() bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					return errors.Is(s.trouble, want.last) || len(ends) > 0
				})
				select {
				case <-up: // over the first server, which was silent for too long before
				default:
				}
			}
			select {
			case <-up:
				if want.last != nil || s.ID() != id {
					t.Errorf("it went on, with the session %d after %d", s.ID(), id)
				}
				ask(t, s, Sync("/"))
				servers.Until(t, "the end of the other session", func() bool { return z.Count("global_sessions") == 1 })
			case err := <-ends:
				if want.last == nil || !errors.Is(err, errSilent) {
					t.Errorf("the session ended with: %v", err)
				}
			}
		})
	}
}
