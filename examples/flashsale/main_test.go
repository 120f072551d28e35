package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
	"github.com/holdfast-go/holdfast/internal/workers"
)

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error {
		err := run(context.Background(), args, os.Stdout)
		for errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) { // on a slow machine
			err = run(context.Background(), args, os.Stdout)
		}
		return err
	})
	os.Exit(m.Run())
}

const webServers = 4

// startShop starts the web servers of deploy/compose.yaml, each a process, and the load
// balancer with the configuration that stands there.
func startShop(t *testing.T, redis, guard string) (door string) {
	t.Helper()
	conf, err := os.ReadFile("../../deploy/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	addresses := make([]string, webServers)
	for i := range addresses {
		server := workers.Start(t, "serve", "-redis", redis, "-guard", guard, "-listen", "127.0.0.1:0")
		line, err := bufio.NewReader(server.Out).ReadString('\n')
		if err != nil {
			t.Fatalf("web server %d says %q: %v", i+1, line, errors.Join(err, server.Wait()))
		}
		addresses[i] = strings.TrimPrefix(strings.TrimSpace(line), "http://")
	}
	return servers.StartNginx(t, func(addr string) string {
		site := substitute(t, string(conf), "listen 80;", "listen "+addr+";")
		for i, address := range addresses {
			site = substitute(t, site, fmt.Sprintf("server web%d:8080;", i+1), "server "+address+";")
		}
		return site
	}).URL()
}

// substitute replaces what has to stand in a text once.
func substitute(t *testing.T, text, before, after string) string {
	t.Helper()
	if strings.Count(text, before) != 1 {
		t.Fatalf("deploy/nginx.conf does not have one %q", before)
	}
	return strings.Replace(text, before, after, 1)
}

// TestSale sells 200 items to 500 buyers. One lock for all processes sells 200 of them;
// without one, or with one in each process, there are more orders than items.
func TestSale(t *testing.T) {
	redis := servers.StartRedis(t)
	for _, c := range []struct {
		guard    string
		oversold bool
	}{{"none", true}, {"mutex", true}, {"lock", false}} {
		t.Run(c.guard, func(t *testing.T) {
			door := startShop(t, redis.URL(), c.guard)
			var clients, serving, bought, missed, failed, items, orders int
			var err error
			for try := 1; ; try++ {
				var report strings.Builder
				err = run(t.Context(), []string{"buy", "-shop", door, "-items", "200", "-buyers", "500", "-limit", "5m"}, &report)
				t.Logf("-guard %s: %s%v", c.guard, report.String(), err)
				var took string
				if _, err := fmt.Sscanf(report.String(), "%d buyers at %d servers in %s %d bought, %d found it sold out, %d failed\n%d items, %d orders\n",
					&clients, &serving, &took, &bought, &missed, &failed, &items, &orders); err != nil {
					t.Fatalf("the report: %v", err)
				}
				// In a pause of this machine, a server may lose its lock, and sell then.
				if orders <= 200 || c.oversold || failed == 0 || try == 3 {
					break
				}
				unproved.Logf(t, "a sale: %v", err)
			}
			if clients != 500 || items != 200 || serving != webServers || bought+missed+failed != 500 || bought > orders {
				t.Errorf("want 500 buyers at %d servers, 200 items, and an order for each item bought", webServers)
			}
			// A buyer who fails because this machine is busy leaves the item to another one.
			if orders > 200 != c.oversold || orders < 200 {
				t.Errorf("%d orders for 200 items", orders)
			}
			if c.oversold && err == nil {
				t.Error("the generator is content")
			}
		})
	}
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "want serve or buy"},
		{"sell", "want serve or buy"},
		{"serve -redis localhost", "-redis: "},
		{"serve now", "takes options only"},
		{"buy -items 0", "at least one of each"},
		{"buy -shop http://127.0.0.1:1 -limit 1ms", "the shop does not open"},
	} {
		if err := run(t.Context(), strings.Fields(c.args), os.Stdout); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("flashsale %s: %v, want %q", c.args, err, c.want)
		}
	}
	redis := servers.StartRedis(t).URL()
	if err := run(t.Context(), []string{"serve", "-redis", redis, "-guard", "hope"}, os.Stdout); err == nil || !strings.Contains(err.Error(), "-guard hope is none of") {
		t.Errorf("got %v", err)
	}
}
