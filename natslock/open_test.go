package natslock_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/natslock"
)

// Each wrong URL is an error that says what would be right.
func TestOpenWrongURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"nats://h/path":                 "want nats://host:port",
		"nats://h?streem=x":             `unknown URL parameter "streem"`,
		"nats://h?stream=a.b":           "letters, digits, - and _",
		"nats://h?replicas=2":           "want 1, 3 or 5",
		"nats://h?replicas=9":           "replicas",
		"nats://h?synced=perhaps":       "synced",
		"nats://h?ca=file.pem":          "natss://",
		"nats://h?creds=no-such-file":   "no-such-file",
		"natss://h?ca=no-such-file.pem": "no-such-file.pem",
		"nats://h1,,h2":                 "one of them is empty",
		"tls://h":                       "did you mean natss://?",
	} {
		_, err := driver.Open(t.Context(), url)
		if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

// Bad options are told before any request.
func TestNewBadOptions(t *testing.T) {
	t.Parallel()
	conn, _ := dialed(t, shared.URL())
	for _, opts := range []natslock.Options{{Stream: "a b"}, {Stream: strings.Repeat("s", 65)}, {Replicas: 2}} {
		if _, err := natslock.New(conn, &opts); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

// The error for a silent server matches the error of the caller's context only if that context has
// ended.
func TestOpenSilentServer(t *testing.T) {
	t.Parallel()
	p := servers.StartProxy(t, shared.Direct())
	p.Blackhole(true)
	if _, err := driver.Open(t.Context(), "nats://"+p.Addr()); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a limit of the caller: %v, want os.ErrDeadlineExceeded only", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := driver.Open(ctx, "nats://"+p.Addr()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a limit of the caller: %v, want the error of the context", err)
	}
}

// A token or a password logs in, and does not appear in the error of a wrong login.
func TestOpenLogin(t *testing.T) {
	t.Parallel()
	password := servers.StartNATS(t, `authorization { timeout: 60, user: app, password: "s3cr3t" }`)
	token := servers.StartNATS(t, `authorization { timeout: 60, token: "s3cr3t" }`)
	opened(t, "nats://app:s3cr3t@"+password.Addr())
	opened(t, "nats://s3cr3t@"+token.Addr())
	for _, url := range []string{"nats://app:wr0ng@" + password.Addr(), "nats://wr0ng@" + token.Addr(), "nats://" + token.Addr()} {
		if err := refused(t, url); err == nil || strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("a wrong login: %v", err)
		}
	}
}
