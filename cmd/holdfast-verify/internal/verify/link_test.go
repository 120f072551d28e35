package verify

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A proxy is no use where workers go around it, and must not stand where it would
// change how a connection is secured.
func TestObstacle(t *testing.T) {
	for _, variable := range []string{"PGSSLMODE", "PGPORT"} {
		t.Setenv(variable, "")
	}
	for text, want := range map[string]string{
		"file:///d":                                        offline,
		"unix:///run/redis.sock":                           offline,
		"redis:":                                           "",
		"redis://h:1/2":                                    "",
		"redis://h1,h2":                                    elsewhere,
		"redis://h?master=m":                               elsewhere,
		"rediss://h":                                       encrypted,
		"redlock://a,b,c":                                  "",
		"redlock://a,b,c?scheme=rediss":                    encrypted,
		"redlock://?node=redis://a":                        aside,
		"memcached://h":                                    "",
		"memcached://h1,h2":                                hashed,
		"etcd://a,b":                                       "",
		"etcds://a,b":                                      encrypted,
		"s3://b":                                           encrypted,
		"s3://b?endpoint=https://h":                        encrypted,
		"s3://b?endpoint=http://h":                         "",
		"gs://b":                                           encrypted,
		"gs://b?endpoint=http://h":                         "",
		"dynamodb://t":                                     encrypted,
		"dynamodb://t?endpoint=http://h":                   "",
		"azblob://a/c":                                     encrypted,
		"azblob://a/c?endpoint=http://h":                   "",
		"zk://a,b":                                         "",
		"zk://a,b?tls=false":                               "",
		"zk://a,b?tls=1":                                   encrypted,
		"postgres://localhost/db":                          "",
		"postgres://localhost,127.0.0.2:1/db":              "",
		"postgres://localhost,h/db":                        encrypted,
		"postgresql://192.0.2.2/db":                        encrypted,
		"postgres://h/db?sslmode=disable":                  "",
		"postgres://h/db?sslmode=require":                  encrypted,
		"postgres://localhost?sslmode=verify":              encrypted,
		"postgres://localhost?listen=h":                    encrypted,
		"postgres://localhost?listen=[::1]:77":             "",
		"postgres:///db?host=/run":                         aside,
		"postgres://localhost/db?host=/run":                aside,
		"postgres://localhost/db?port=7":                   aside,
		"postgres:///db":                                   aside, // wherever the environment says
		"sqlserver://localhost?database=db":                "",
		"sqlserver://h?database=db":                        encrypted,
		"sqlserver://h?database=db&Encrypt=disable":        "",
		"sqlserver://localhost?database=db&encrypt=strict": encrypted,
		"sqlserver://localhost/instance?database=db":       elsewhere,
		"sqlserver://localhost?database=db&FailoverPartner=standby": elsewhere,
		"mysql://localhost/db":                   "",
		"mysql://127.0.0.1:7/db":                 "",
		"mysql://h/db":                           encrypted,
		"mariadb://h/db?tls=false":               "",
		"mysql://localhost/db?tls=skip-verify":   encrypted,
		"mysql://localhost/db?ca=f":              encrypted,
		"mysql:///db?socket=/run/s":              aside,
		"redis://h?addr=h2":                      elsewhere,
		"redis://h?master_set=m":                 elsewhere,
		"redis://h?master_name=m":                elsewhere,
		"postgres://localhost/db?ssl=true":       encrypted,
		"postgres://localhost/db?service=s":      aside,
		"mysql://h/db?tls=0":                     "",
		"mysql://h/db?ssl-mode=DISABLED":         "",
		"mysql://h/db?ssl-mode=Preferred":        "",
		"mysql://localhost/db?ssl-mode=REQUIRED": encrypted,
		"mysql://localhost/db?ssl-ca=f":          encrypted,
	} {
		if got := obstacle(parsed(t, text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	t.Setenv("PGSSLMODE", "disable")
	if got := obstacle(parsed(t, "postgres://h")); got != "" {
		t.Errorf("PGSSLMODE=disable: %q", got)
	}
	t.Setenv("PGSSLMODE", "verify-full")
	if got := obstacle(parsed(t, "postgres://localhost")); got != encrypted {
		t.Errorf("PGSSLMODE=verify-full: %q", got)
	}
}

func TestLink(t *testing.T) {
	h := &servers.Host{}
	defer h.Close()
	network := []plan.Nemesis{plan.Kill, plan.Slow}
	for _, test := range []struct {
		url     string
		nemeses []plan.Nemesis
		proxies int
	}{
		{"redis://h:1/2?db=1", []plan.Nemesis{plan.Kill, plan.Clock}, 0},
		{"redis://h:1/2?prefix=x", network, 1},
		{"etcd://a,b,c", network, 3},
		{"dynamodb://t?endpoint=http://h:8000", network, 1},
		{"s3://b/c?conns=2&endpoint=http://h:9000", network, 1},
		{"azblob://a/c?conns=2&endpoint=http://h:10000/a", network, 1},
		{"postgres://u:p@localhost/db?listen=127.0.0.1:7&conns=2", network, 2},
	} {
		l, err := newLink(h, parsed(t, test.url), test.nemeses)
		if err != nil || len(l.proxies) != test.proxies {
			t.Fatalf("%s, %v: %d proxies, %v", test.url, test.nemeses, len(l.proxies), err)
		}
		if test.proxies == 0 {
			if l.url != test.url || l.unused() {
				t.Errorf("%s has become %s", test.url, l.url)
			}
			continue
		}
		own, was := parsed(t, l.url), parsed(t, test.url)
		var at []string
		for _, p := range l.proxies {
			at = append(at, p.Addr())
		}
		hosts, listen := own.Host, own.Query().Get("listen")
		if listen != "" {
			hosts += "," + listen
		}
		if endpoint := own.Query().Get("endpoint"); endpoint != "" {
			hosts = parsed(t, endpoint).Host
		}
		if hosts != strings.Join(at, ",") || own.Path != was.Path || own.Query().Get("conns") != was.Query().Get("conns") || !l.unused() {
			t.Errorf("%s has become %s", test.url, l.url)
		}
	}
	if _, err := newLink(h, parsed(t, "etcd://a,,b"), network); err == nil {
		t.Error("an empty host has a proxy")
	}
}

// echo is the address of a server that says what it is told.
func echo(t *testing.T) string {
	t.Helper()
	return servers.StartStranger(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
}

// A worker may be cut off from one server, and not from the others.
func TestPartOfThem(t *testing.T) {
	h := &servers.Host{}
	defer h.Close()
	urls := parsed(t, "redlock://"+echo(t)+","+echo(t)+","+echo(t))
	l, err := newLink(h, urls, []plan.Nemesis{plan.Partition})
	if err != nil {
		t.Fatal(err)
	}
	fault := plan.Fault{Nemesis: plan.Partition, Part: true, Node: 4}
	l.cut(fault, true)
	said := make(chan int)
	for i, p := range l.proxies {
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		go func() {
			if _, err := conn.Write([]byte("?")); err != nil {
				t.Error(err)
			}
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
			said <- i
		}()
	}
	if first := []int{<-said, <-said}; slices.Contains(first, 1) {
		t.Error("the second server was heard, of which a worker was cut off")
	}
	l.cut(fault, false)
	if last := <-said; last != 1 {
		t.Errorf("server %d was heard twice", last)
	}
}

// The history tells of a fault of the network how much it has touched.
func TestHarmTouches(t *testing.T) {
	h := &servers.Host{}
	defer h.Close()
	l, err := newLink(h, parsed(t, "redis://"+echo(t)), []plan.Nemesis{plan.Partition})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "parent.jsonl")
	parent, err := history.Create(path, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{history: parent, places: []*place{{link: l}}}
	fault := plan.Fault{Nemesis: plan.Partition, For: time.Millisecond}
	if err := c.harm(t.Context(), t.Context(), 1, fault); err != nil { // of which nobody takes note
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", l.proxies[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	said := make(chan error, 1)
	go func() {
		b := make([]byte, 1)
		for conn.SetDeadline(time.Now().Add(time.Minute)); l.touched() == 0; { // until it is cut off
			if _, err := conn.Write(b); err != nil {
				said <- err
				return
			}
			if _, err := conn.Read(b); err != nil {
				said <- err
				return
			}
		}
		said <- nil
	}()
	for number := 2; l.touched() == 0; number++ {
		if err := c.harm(t.Context(), t.Context(), number, fault); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-said; err != nil || l.unused() {
		t.Errorf("%v; the proxy was used: %v", err, !l.unused())
	}
	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := check.Read(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	if first, last := run.Faults[0], run.Faults[len(run.Faults)-1]; first.Touched != 0 || last.Touched == 0 {
		t.Errorf("the first fault has touched %d pieces, the last %d", first.Touched, last.Touched)
	}
}
