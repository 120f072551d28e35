package http

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
	"github.com/holdfast-go/holdfast/once"
	_ "github.com/holdfast-go/holdfast/redislock"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	workers.Main(func(args []string) error { return serveForTests(args[0], args[1], args[2], args[3] == "hang") })
	os.Exit(m.Run())
}

// ttl is long enough for a slow machine to keep its locks.
const ttl = 10 * time.Second

// serveForTests serves withdrawals that are entered in a journal: when they begin and,
// unless they hang, when they end.
func serveForTests(redis, router, journal string, hang bool) error {
	locks, err := holdfast.Open(context.Background(), redis, &holdfast.Options{TTL: ttl})
	for errors.Is(err, os.ErrDeadlineExceeded) { // on a slow machine
		locks, err = holdfast.Open(context.Background(), redis, &holdfast.Options{TTL: ttl})
	}
	if err != nil {
		return err
	}
	file, err := os.OpenFile(journal, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	shop := Shop{Withdraw: func(ctx context.Context, _ string) error {
		lock, _ := holdfast.FromContext(ctx)
		token := lock.Fence()
		if _, err := fmt.Fprintf(file, "%d begins\n", token); err != nil {
			return err
		}
		if hang {
			fmt.Println("hanging")
			select {}
		}
		_, err := fmt.Fprintf(file, "%d ends\n", token)
		return err
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, routers[router](shop, NewGuards(locks, new(once.Memory))))
}

// A server is a process.
type server struct {
	*workers.Worker
	url   string
	lines *bufio.Scanner // what else it writes
}

func start(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{Worker: workers.Start(t, args...)}
	s.lines = bufio.NewScanner(s.Out)
	if !s.lines.Scan() {
		t.Fatal("a server does not start")
	}
	s.url = s.lines.Text()
	return s
}

// Servers of all routers withdraw from one account, each from its own process, one at a
// time. The first is killed while it does.
func TestServersTakeTurns(t *testing.T) {
	t.Parallel()
	const clients, each = 8, 5
	redis, journal := servers.StartRedis(t).URL(), filepath.Join(t.TempDir(), "journal")
	first := start(t, redis, "standard", journal, "hang")
	urls := []string{first.url}
	for router := range routers {
		urls = append(urls, start(t, redis, router, journal, "work").url)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	begun := make(chan error, 1)
	go func() {
		_, err := withdraw(ctx, first.url)
		begun <- err
	}()
	first.lines.Scan() // it hangs
	if code, err := withdraw(ctx, urls[1]); code != http.StatusConflict {
		t.Errorf("while another server withdraws: %d, %v", code, err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-begun; err == nil {
		t.Error("a server that was killed has answered")
	}
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := range each {
				if err := withdrawSometime(ctx, urls, i+n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	checkJournal(t, journal, clients*each)
}

// withdraw asks a server, and again while its Redis is too slow.
func withdraw(ctx context.Context, url string) (status int, err error) {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/accounts/7/withdraw", nil)
		if err != nil {
			return 0, err
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusServiceUnavailable {
			return response.StatusCode, err
		}
	}
}

// withdrawSometime asks one server after the other, and again while another request
// is being worked on, until one has withdrawn.
func withdrawSometime(ctx context.Context, urls []string, i int) error {
	for ; ; i++ {
		code, err := withdraw(ctx, urls[i%len(urls)])
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("no withdrawal in time: %d, %w", code, err)
		case code == http.StatusNoContent:
			return nil
		case err == nil && code != http.StatusConflict:
			return fmt.Errorf("answered with %d", code)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// checkJournal finds withdrawals that overlap. The first one has never ended.
func checkJournal(t *testing.T, journal string, want int) {
	t.Helper()
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 1+2*want {
		t.Fatalf("the journal has %d lines, want %d", len(lines), 1+2*want)
	}
	var before uint64
	for i, line := range lines {
		var token uint64
		var what string
		fmt.Sscan(line, &token, &what)
		ends := i > 0 && i%2 == 0
		if ends && (token != before || what != "ends") || !ends && (token <= before || what != "begins") {
			t.Errorf("line %d of the journal is %q after token %d", i+1, line, before)
		}
		before = token
	}
}
