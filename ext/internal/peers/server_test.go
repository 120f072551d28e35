//go:build unix

package peers

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// A server is a Redis server that tells what it has to do.
type server struct {
	*servers.Redis
	tb testing.TB
}

func startServer(tb testing.TB) server {
	tb.Helper()
	return server{servers.StartRedis(tb), tb}
}

// number reads a field of INFO.
func (s server) number(field string) float64 {
	s.tb.Helper()
	n, err := strconv.ParseFloat(s.Info(field), 64)
	if err != nil {
		s.tb.Fatal(err)
	}
	return n
}

func (s server) cpu() time.Duration {
	s.tb.Helper()
	seconds := s.number("used_cpu_user") + s.number("used_cpu_sys")
	return time.Duration(seconds * float64(time.Second))
}

// Commands that a client sends and scripts do not, whoever it is.
var sent = []string{"eval", "evalsha", "evalsha_ro", "fcall", "script|load", "subscribe", "ssubscribe",
	"unsubscribe", "sunsubscribe", "hello", "ping", "client|tracking", "wait"}

// commands counts the commands since the server began that clients have sent:
// those in sent and more. INFO counts what scripts call as well.
func (s server) commands(more []string) (n int) {
	s.tb.Helper()
	for _, name := range slices.Concat(sent, more) {
		calls, _, _ := strings.Cut(strings.TrimPrefix(s.Info("cmdstat_"+name), "calls="), ",")
		count, err := strconv.Atoi(calls)
		if err != nil && calls != "" {
			s.tb.Fatal(err)
		}
		n += count
	}
	return n
}
