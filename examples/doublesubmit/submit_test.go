package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// One form is sent 200 times at once, and 200 times after that.
const times = 200

func TestDoubleSubmit(t *testing.T) {
	for _, c := range []struct {
		wait time.Duration
		kill bool
	}{{0, false}, {0, true}, {time.Minute, false}, {time.Minute, true}} {
		t.Run(fmt.Sprintf("wait=%v,kill=%v", c.wait, c.kill), func(t *testing.T) {
			f := startFleet(t, 4, c.wait)
			b := newBrowser(t, f)
			var all sync.WaitGroup
			for i := range times {
				all.Go(func() { b.submit(i) })
			}
			first := f.works(t)
			over := make(chan struct{})
			go f.finishOthers(t, over)
			if c.wait == 0 {
				b.await(times - 1) // all but the one that works
			}
			if c.kill {
				if err := first.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			} else {
				first.finish(t)
			}
			all.Wait()
			awaitTurn(t)
			for i := range times {
				b.submit(i)
			}
			close(over)
			if n := f.taken(t); n != 1 {
				t.Errorf("%d orders were taken, want 1", n)
			}
			if b.fresh != 1 || b.fresh+b.replays+b.held != 2*times {
				t.Errorf("201 %d times, replayed %d times, 409 %d times; want 1 and %d in all", b.fresh, b.replays, b.held, 2*times)
			}
			if c.wait == 0 && b.held < times-1 {
				t.Errorf("409 %d times, want each time while the first was at work", b.held)
			}
			t.Logf("201 %d times, replayed %d times, 409 %d times", b.fresh, b.replays, b.held)
		})
	}
}

// finishOthers lets whoever takes over end its work at once.
func (f *fleet) finishOthers(t *testing.T, over <-chan struct{}) {
	for {
		select {
		case s := <-f.working:
			s.finish(t)
		case <-over:
			return
		}
	}
}

// awaitTurn waits until the lease of a server that was killed has run out.
func awaitTurn(t *testing.T) {
	t.Helper()
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
		return holdfast.Open(ctx, redis.URL(), &holdfast.Options{Prefix: "shop/"})
	})
	defer locks.Close()
	for key, err := range locks.Keys(t.Context(), "once/") {
		if err != nil {
			t.Fatal(err)
		}
		servers.Insist(t, func(ctx context.Context) (struct{}, error) { // else the browsers find the key locked
			lock, err := locks.Lock(ctx, key)
			if err != nil {
				return struct{}{}, err
			}
			return struct{}{}, lock.Unlock()
		})
	}
}

// A browser has loaded a form.
type browser struct {
	t      *testing.T
	fleet  *fleet
	client *http.Client
	token  string

	mu                   sync.Mutex
	answered             sync.Cond
	answers              int
	fresh, replays, held int
}

func newBrowser(t *testing.T, f *fleet) *browser {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: times}
	t.Cleanup(transport.CloseIdleConnections)
	b := &browser{t: t, fleet: f, client: &http.Client{Transport: transport, Timeout: 2 * time.Minute}}
	b.answered.L = &b.mu
	response, err := b.client.Get(f.servers[0].url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`name="token" value="(\w+)"`).FindSubmatch(text)
	if token == nil {
		t.Fatalf("the form has no token: %s", text)
	}
	b.token = string(token[1])
	return b
}

// submit sends the form to one server after the other until one answers.
func (b *browser) submit(i int) {
	n := len(b.fleet.servers)
	b.submitTo(slices.Concat(b.fleet.servers[i%n:], b.fleet.servers[:i%n])...)
}

func (b *browser) submitTo(servers ...*server) {
	defer b.ended()
	var last error
	for try := range 100 {
		response, text, err := b.post(servers[try%len(servers)])
		if err == nil && !b.again(response) {
			b.count(response, text)
			return
		}
		last = fmt.Errorf("%v: %s", err, text)
	}
	b.t.Error(last)
}

// post sends the form once. The server may have been killed.
func (b *browser) post(s *server) (response *http.Response, text string, err error) {
	response, err = b.client.PostForm(s.url+"/orders", url.Values{"token": {b.token}, "item": {"tea"}})
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}

// again reports whether an answer only says that this machine is slow: Redis did not
// answer in time, or a lock was lost that was waited for.
func (b *browser) again(r *http.Response) bool {
	return r.StatusCode == http.StatusServiceUnavailable || r.StatusCode == http.StatusConflict && b.fleet.wait > 0
}

func (b *browser) count(r *http.Response, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	replayed := r.Header.Get(httplock.ReplayedHeader) == "true"
	switch {
	case r.StatusCode == http.StatusConflict && r.Header.Get("Retry-After") != "":
		b.held++
	case r.StatusCode != http.StatusCreated || text != "order 1\n":
		b.t.Errorf("answered with %s: %s", r.Status, text)
	case replayed:
		b.replays++
	default:
		b.fresh++
	}
}

// ended counts a submit, whatever came of it.
func (b *browser) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers++
	b.answered.Broadcast()
}

// await waits for so many answers.
func (b *browser) await(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.answers < n {
		b.answered.Wait()
	}
}
