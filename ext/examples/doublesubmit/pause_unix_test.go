//go:build unix

package main

import (
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"
)

// A server that was paused for longer than its lease, and goes on after another has
// done its work, cannot take the order again.
func TestPausedServer(t *testing.T) {
	f := startFleet(t, 2, time.Minute)
	b := newBrowser(t, f)
	status := make(chan int)
	submit := func(s *server) {
		response, err := b.client.PostForm(s.url+"/orders", url.Values{"token": {b.token}, "item": {"tea"}})
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		response.Body.Close()
		status <- response.StatusCode
	}
	go submit(f.servers[0])
	paused := f.works(t)
	if err := paused.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	go submit(f.servers[1])
	f.works(t).finish(t) // once the lease has run out
	if code := <-status; code != http.StatusCreated {
		t.Errorf("the second server answered with %d", code)
	}
	if err := paused.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	paused.finish(t)
	if code := <-status; code != http.StatusConflict {
		t.Errorf("the paused server answered with %d, want 409, so that the client asks again", code)
	}
	over := make(chan struct{})
	defer close(over)
	go f.finishOthers(t, over)
	b.submit(0)
	if b.replays != 1 {
		t.Error("when asked again, it does not give the answer of the other")
	}
	if n := f.taken(t); n != 1 {
		t.Errorf("%d orders were taken, want 1", n)
	}
}
