package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A crowd is the buyers of a round.
type crowd struct {
	client   *http.Client
	door     string
	start    chan struct{} // closed when the door opens
	served   atomic.Int64
	visits   []visit
	duration time.Duration
}

// A visit is the experience of one buyer.
type visit struct {
	took   time.Duration
	status int
	err    error
}

// rush lets all buyers in at once and waits until every buyer has an answer.
func (s *stage) rush(ctx context.Context, g Guard, door string) *crowd {
	c := &crowd{
		client: &http.Client{Transport: &http.Transport{}},
		door:   door,
		start:  make(chan struct{}),
		visits: make([]visit, s.Buyers),
	}
	defer c.client.CloseIdleConnections()
	var buyers sync.WaitGroup
	for i := range c.visits {
		buyers.Go(func() {
			<-c.start
			c.visits[i] = c.visit(ctx, fmt.Sprintf("buyer %d", i+1))
			c.served.Add(1)
		})
	}
	done := make(chan struct{})
	began := time.Now()
	close(c.start)
	go func() {
		buyers.Wait()
		c.duration = time.Since(began)
		close(done)
	}()
	s.watch(g, c, done)
	return c
}

// watch reports the progress until done is closed.
func (s *stage) watch(g Guard, c *crowd, done <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s.progress("%s: %d of %d buyers served", g, c.served.Load(), len(c.visits))
		select {
		case <-tick.C:
		case <-done:
			return
		}
	}
}

// visit sends one buyer through the door and records the visit.
func (c *crowd) visit(ctx context.Context, name string) visit {
	began := time.Now()
	status, body, err := buy(ctx, c.client, c.door, name)
	if err == nil && status != http.StatusOK && status != http.StatusConflict {
		err = fmt.Errorf("status %d: %s", status, body)
	}
	return visit{took: time.Since(began), status: status, err: err}
}

// buy sends one buyer through a door.
func buy(ctx context.Context, client *http.Client, door, name string) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, door+"/buy?buyer="+url.QueryEscape(name), nil)
	if err != nil {
		return 0, nil, err
	}
	reply, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer reply.Body.Close()
	body, err = io.ReadAll(reply.Body)
	return reply.StatusCode, body, err
}
