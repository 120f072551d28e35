//go:build unix

package main

import (
	"net/http"
	"syscall"
	"testing"
	"time"
)

// A server that was paused for longer than its lease, and goes on after another has
// done its work, cannot take the order again.
func TestPausedServer(t *testing.T) {
	f := startFleet(t, 2, time.Minute)
	b := newBrowser(t, f)
	first := make(chan *http.Response)
	go func() {
		response, _, err := b.post(f.servers[0])
		if err != nil {
			t.Error(err)
			response = new(http.Response)
		}
		first <- response
	}()
	paused := f.works(t)
	if err := paused.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	defer close(over)
	go f.finishOthers(t, over)
	b.submitTo(f.servers[1]) // which waits until the lease has run out
	if b.fresh != 1 {
		t.Error("the second server has not taken the order")
	}
	if err := paused.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	paused.finish(t)
	if response := <-first; !b.again(response) {
		t.Errorf("the paused server answered with %s, want 409, so that the client asks again", response.Status)
	}
	b.submitTo(f.servers[0])
	if b.replays != 1 {
		t.Error("when asked again, it does not give the answer of the other")
	}
	if n := f.taken(t); n != 1 {
		t.Errorf("%d orders were taken, want 1", n)
	}
}
