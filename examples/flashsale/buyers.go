package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A crowd is the buyers of a sale, and how the sale went for the crowd.
type crowd struct {
	door           string // the URL of the shop
	items, buyers  int
	client         *http.Client
	bought, missed int             // buyers with an item, buyers who found the item sold out
	failed         []error         // an error for every other buyer
	servers        map[string]bool // the web servers that have answered
}

// buy opens the sale, sends every buyer, and reports the orders. If there is not one
// order per item, buy returns an error.
func buy(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("buy", flag.ContinueOnError)
	c := crowd{client: &http.Client{Transport: &http.Transport{}}, servers: make(map[string]bool)}
	flags.StringVar(&c.door, "shop", "http://localhost:8080", "URL of the load balancer")
	flags.IntVar(&c.items, "items", 200, "how many items are on sale")
	flags.IntVar(&c.buyers, "buyers", 500, "how many buyers want one each")
	limit := flags.Duration("limit", 2*time.Minute, "how long to wait for the shop in all")
	if err := parse(flags, args); err != nil {
		return err
	}
	if c.items < 1 || c.buyers < 1 {
		return fmt.Errorf("-items %d -buyers %d: at least one of each is needed", c.items, c.buyers)
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	defer c.client.CloseIdleConnections()

	if err := c.open(ctx); err != nil {
		return fmt.Errorf("the shop does not open: %w", err)
	}
	began := time.Now()
	c.rush(ctx)
	fmt.Fprintf(out, "%d buyers at %d servers in %v: %d bought, %d found it sold out, %d failed\n",
		c.buyers, len(c.servers), time.Since(began).Round(time.Millisecond), c.bought, c.missed, len(c.failed))
	orders, err := c.orders(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d items, %d orders\n", c.items, orders)
	return c.judge(orders)
}

// judge returns an error unless the sale is correct.
func (c *crowd) judge(orders int) error {
	var errs []error
	if len(c.failed) > 0 {
		errs = append(errs, fmt.Errorf("%d buyers failed, the first: %w", len(c.failed), c.failed[0]))
	}
	if want := min(c.items, c.buyers); orders > want {
		errs = append(errs, fmt.Errorf("oversold by %d", orders-want))
	} else if orders < want {
		errs = append(errs, fmt.Errorf("%d items were not sold", want-orders))
	}
	return errors.Join(errs...)
}

// open begins the sale as soon as the shop answers.
func (c *crowd) open(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		status, text, _, err := c.send(ctx, http.MethodPut, fmt.Sprintf("/stock?items=%d", c.items))
		if err == nil && status == http.StatusNoContent {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("its last answer was %d %s", status, text))
		}
	}
}

// rush sends every buyer at once and returns after the last answer.
func (c *crowd) rush(ctx context.Context) {
	var mu sync.Mutex
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range c.buyers {
		all.Go(func() {
			<-start
			status, text, server, err := c.send(ctx, http.MethodPost, "/buy?buyer="+url.QueryEscape(fmt.Sprintf("buyer %d", i+1)))
			mu.Lock()
			defer mu.Unlock()
			if server != "" {
				c.servers[server] = true
			}
			switch {
			case err != nil:
				c.failed = append(c.failed, err)
			case status == http.StatusCreated:
				c.bought++
			case status == http.StatusConflict:
				c.missed++
			default:
				c.failed = append(c.failed, fmt.Errorf("%d %s", status, text))
			}
		})
	}
	close(start)
	all.Wait()
}

// orders returns how many orders the shop has.
func (c *crowd) orders(ctx context.Context) (int, error) {
	status, text, _, err := c.send(ctx, http.MethodGet, "/stock")
	if err != nil {
		return 0, err
	}
	if status != http.StatusOK {
		return 0, fmt.Errorf("the shop says %d %s", status, text)
	}
	var s sale
	err = json.Unmarshal([]byte(text), &s)
	return int(s.Orders), err
}

// send sends a request and returns the answer and the name of the web server.
func (c *crowd) send(ctx context.Context, method, path string) (status int, text, server string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.door+path, nil)
	if err != nil {
		return 0, "", "", err
	}
	response, err := c.client.Do(r)
	if err != nil {
		return 0, "", "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(body)), response.Header.Get("Sold-By"), err
}
