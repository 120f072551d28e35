package redislock_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
	_ "github.com/holdfast-go/holdfast/redlock"
)

// TestURLsOfOthers opens URLs as services give them out and as other clients of the
// program want them.
func TestURLsOfOthers(t *testing.T) {
	servers.NeedRedis7(t)
	const users = "user app on >secret ~* &* +@all"
	plain, secure := servers.StartRedis(t, users), servers.StartRedisTLS(t, users)
	for _, at := range []string{
		"redis://" + plain.Addr() + "/0",
		"redis://app:secret@" + plain.Addr() + "/0?protocol=3&client_name=web&dial_timeout=5s&write_timeout=3s&client_cache=0&max_retries=0",
		"redis://app:secret@" + plain.Addr() + "?dial_timeout=5&read_timeout=3&pool_timeout=-1", // go-redis reads plain numbers as seconds
		"redis://app:secret@" + plain.Addr() + "?dial_timeout=0&max_retries=-1",
		"redis://app:secret@" + plain.Addr() + "?protocol=2&pool_size=20&min_idle_conns=2&read_timeout=3s&idle_timeout=5m&pool_fifo=true",
		"rediss://default:x@" + secure.Addr() + "?skip_verify=true",           // as Heroku, whose certificates nobody has signed
		"rediss://app:secret@" + secure.Addr() + "/0?ca=" + secure.TLS.CA,     // as Upstash and Azure
		"rediss://:x@" + secure.Addr() + "/1?skip_verify=true&max_retries=-1", // a key of Azure, without a user
	} {
		works(t, at)
	}
	for at, words := range map[string]string{
		"redis://h?protocol=4":                 "protocol is not one of 3, 2",
		"redis://h?dial_timeout=5x":            "dial_timeout is not a duration",
		"redis://h?ssl_cert_reqs=none":         `unknown URL parameter "ssl_cert_reqs" (known: client_name, prefix, wait, master,`,
		"unix:///run/x?addr=h2":                "want unix:///path",
		unhurried("rediss://" + secure.Addr()): "skip_verify=true trusts any certificate",
		"redis://h?sentinel_username=x&db=99":  "master",
	} {
		if _, err := driver.Open(t.Context(), at); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("opened %s: %v, want an error with %q", at, err, words)
		}
	}
}

// TestRESP2 is the contract with the protocol of Redis before version 6, which proxies
// may insist on.
func TestRESP2(t *testing.T) {
	t.Parallel()
	url := servers.StartRedis(t).URL() + "?protocol=2"
	handOver(t, "key", openLocker(t, url), openLocker(t, url))
	t.Run("contract", func(t *testing.T) {
		repeated(t)
		drivertest.Run(t, opening(url))
	})
}

// TestRenamedAuth asks a server that repeats commands that it does not know.
func TestRenamedAuth(t *testing.T) {
	server := servers.StartRedis(t, "rename-command AUTH x", "rename-command HELLO y")
	_, err := driver.Open(t.Context(), unhurried("redis://app:secret@"+server.Addr()))
	if err == nil || !strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an unknown command and not the password", err)
	}
}

// TestWarnsOfPlainPasswords takes 0.0.0.0 for another host, at which this one answers.
func TestWarnsOfPlainPasswords(t *testing.T) {
	server := servers.StartRedis(t, "user app on >secret ~* &* +@all")
	elsewhere := strings.Replace(server.Addr(), "127.0.0.1", "0.0.0.0", 1)
	for at, warns := range map[string]bool{
		"redis://app:secret@" + elsewhere:     true,
		"redis://app:secret@" + server.Addr(): false,
		"redis://" + elsewhere:                false,
	} {
		var log bytes.Buffer
		locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
			return holdfast.Open(ctx, at, &holdfast.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		})
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
		told := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), elsewhere+" may be unencrypted") && strings.Contains(log.String(), "use rediss://")
		if told != warns || strings.Contains(log.String(), "secret") {
			t.Errorf("opened %s: %s", at, log.String())
		}
	}
}

// TestWarnsOfPlainPasswordsInRedlock has the warnings of all nodes, as soon as all have
// answered: Check does not wait for a minority.
func TestWarnsOfPlainPasswordsInRedlock(t *testing.T) {
	var hosts []string
	for _, server := range servers.StartMasters(t, 3, "user app on >secret ~* &* +@all") {
		hosts = append(hosts, strings.Replace(server.Addr(), "127.0.0.1", "0.0.0.0", 1))
	}
	s := opening("redlock://app:secret@" + strings.Join(hosts, ",")).Open(t)
	defer s.Close()
	until(t, "a warning of each node", func() bool {
		warnings := servers.Insist(t, s.(driver.Checker).Check)
		all := strings.Join(warnings, "\n") // another is about nodes that have just started, for their first 15 s
		n := strings.Count(all, "may be unencrypted")
		if n > len(hosts) || strings.Contains(all, "secret") {
			t.Fatalf("%d of %d nodes are warned of:\n%s", n, len(hosts), all)
		}
		return n == len(hosts)
	})
}
