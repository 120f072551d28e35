package all_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	_ "github.com/holdfast-go/holdfast/all"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/fileurl"
	"github.com/holdfast-go/holdfast/internal/servers"
)

const secret = "S3cr3tS3cr3t"

// FuzzSecrets opens URLs of every scheme with a user and a password, of whatever
// characters. The secret in the password is in no error, log line or panic.
func FuzzSecrets(f *testing.F) {
	for _, c := range []struct{ slashes, user, before, after, rest string }{
		{"//", "user", "", "", "h"},
		{"///", "user", "", "", "h"},
		{"", "user", "", "", "h"},
		{"/", "user", "", "", "h/0"},
		{"//", "", "", "", "127.0.0.1:1"},
		{"//", "user", "/", "", "h"},
		{"//", "user", "12/", "", "h"},
		{"//", "user", "12:", ":12/", "h"},
		{"//", "user", "?", "", "h"},
		{"//", "user", "12?", "=x", "h"},
		{"//", "user", "12?", "&x=y", "h"},
		{"//", "user", "?conns=", "", "h"},
		{"//", "user", "?application_name=", "&pool_max_conns=x", "h"},
		{"//", "user", "?password=x&", "&y", "h"},
		{"//", "user", "#", "", "h"},
		{"//", "user", "a@", "/b", "h"},
		{"//", "user", "a@", "?prefix=", "h"},
		{"//", "user", "%", "", "h"},
		{"//", "user", "%zz", "", "h"},
		{"//", "user", "a%2F", "b%40", "127.0.0.1:1,127.0.0.2:1"},
		{"//", "us%3Aer", "", "", "h/database?sslmode=disable&sslcert=x"},
		{"//", "user", "", "", "h/x?nonsense=1"},
		{"//", "user", "", "", "h/1?ca=/none&cert=x"},
		{"//", "user", "", "", "127.0.0.1:1/database?sslmode=nonsense"},
		{"//", "?node=redis://user", "", "", "h"},
		{"//", "?node=redis://user", "/", "&node=mem://", "h"},
		{"//", "?node=file:///a&node=redis://user", "&", "", "h"},
		{"//", "?node=redis://user", "%2526", "", "h&node=mem://a&node=mem://b"},
		{"//h?sentinel_password=x&", "", "", "", ""},
		{"//[", "user", "", "]", "h"},
		{"//", "user", " ", "\x7f", "h"},
	} {
		f.Add(c.slashes, c.user, c.before, c.after, c.rest)
	}
	f.Fuzz(func(t *testing.T, slashes, user, before, after, rest string) {
		text := slashes + user + ":" + before + secret + after + "@" + rest
		for _, scheme := range append(driver.Schemes(), "oracle", "user") {
			checkSecret(t, scheme+":"+text)
		}
		checkSecret(t, strings.TrimLeft(text, "/"))
	})
}

// TestSecrets is what a fuzzer cannot tell from other text: secrets that no user
// stands before.
func TestSecrets(t *testing.T) {
	for _, scheme := range driver.Schemes() {
		for _, rest := range []string{
			"//S3cr3tS3cr3t@h", "//S3cr3tS3cr3t:@h", "//S3cr3tS3cr3t@h/x?y=1", "//S3cr3tS3cr3t/x@h",
			"//h/db?password=S3cr3tS3cr3t&x=1", "//h/db?password=a&S3cr3tS3cr3t", "//h/db?sslpassword=S3cr3tS3cr3t&sslmode=none",
			"//h?sentinel_password=S3cr3tS3cr3t", "//h/db?user=u&password=S3cr3tS3cr3t&sslmode=verify-full&sslrootcert=/none",
			"//h/db?passwd=S3cr3tS3cr3t", "//h/db?passwd=a&S3cr3tS3cr3t=b", "//h?conns=S3cr3tS3cr3t", "//h#S3cr3tS3cr3t",
			"//h?acl=digest:u:S3cr3tS3cr3t", "//h?wait=S3cr3tS3cr3t", "//h/db?x=%zzS3cr3tS3cr3t",
		} {
			checkSecret(t, scheme+":"+rest)
		}
	}
}

// checkSecret opens a URL for as long as it takes to look at it, and talks to nobody.
func checkSecret(t *testing.T, raw string) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%.60q panics: %v", raw, r)
		}
	}()
	u, err := driver.ParseURL(raw)
	if err == nil && (u.Scheme == "file" || u.Scheme == "sqlite") {
		if path, err := fileurl.Path(u, ""); err == nil && !strings.HasPrefix(path, t.TempDir()+string(filepath.Separator)) {
			return // It would be made.
		}
	}
	if err == nil && strings.Contains(driver.Redact(u), secret) {
		t.Errorf("%q is shown as %s", raw, driver.Redact(u))
	}
	if u, err := url.Parse(raw); err == nil && u.Scheme != "file" && u.Scheme != "sqlite" && strings.Contains(driver.Redact(u), secret) {
		t.Errorf("%q is shown as %s, though it is refused", raw, driver.Redact(u))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var log bytes.Buffer
	locks, err := holdfast.Open(ctx, raw, &holdfast.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err == nil {
		err = locks.Close()
	}
	if text := fmt.Sprintf("%v %+v %s", err, err, log.String()); strings.Contains(text, secret) {
		t.Errorf("opened %q: %s", raw, text)
	}
}

// tcp are the schemes of servers, and what their URLs need after the host.
var tcp = map[string]string{
	"etcd": "", "etcds": "", "mariadb": "/db", "memcached": "", "mysql": "/db", "nats": "", "natss": "", "postgres": "/db", "postgresql": "/db",
	"redis": "", "rediss": "", "redlock": "", "zk": "",
}

// A server that nobody can reach is told of without the password.
func TestUnreachable(t *testing.T) {
	for scheme, path := range tcp {
		hosts := "127.0.0.1:1"
		if scheme == "redlock" {
			hosts += ",127.0.0.1:2,127.0.0.1:3"
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := holdfast.Open(ctx, scheme+"://user:"+secret+"@"+hosts+path, nil)
		cancel()
		if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// A server that repeats what it is sent, such as a wrong one, has its answer told of
// without the password.
func TestEcho(t *testing.T) {
	addr := servers.StartStranger(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	for scheme, path := range tcp {
		hosts := addr
		if scheme == "redlock" {
			hosts += ",localhost" + addr[strings.LastIndex(addr, ":"):] + ",127.0.0.1:1"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		locks, err := holdfast.Open(ctx, scheme+"://user:"+secret+"@"+hosts+path, nil)
		cancel()
		if err == nil {
			err = locks.Close()
		}
		if strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}
