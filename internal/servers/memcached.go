package servers

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Memcached is a Memcached server.
type Memcached struct {
	*Process

	TLS *Certificates // nil if the server speaks plain text

	port           int
	user, password string // "" if the server asks for none
	users          string // the file of names and passwords
	owner          *account
}

// StartMemcached starts a server with 64 MB of memory. Options are extra arguments, such
// as "-m", "8". The data in memory is lost when the server is killed, stopped or
// restarted.
func StartMemcached(tb TB, options ...string) *Memcached {
	tb.Helper()
	return new(Memcached).start(tb, options)
}

// StartMemcachedUser is StartMemcached for a server that demands a name and a password, as
// with -Y.
func StartMemcachedUser(tb TB, user, password string, options ...string) *Memcached {
	tb.Helper()
	m := &Memcached{user: user, password: password}
	return m.start(tb, options)
}

// StartMemcachedTLS is StartMemcached for a server that speaks TLS only.
func StartMemcachedTLS(tb TB, options ...string) *Memcached {
	tb.Helper()
	m := &Memcached{TLS: newCertificates(tb)}
	m.TLS.own(tb, plainAccount(tb, "memcache"))
	return m.start(tb, append(slices.Clone(options), "-Z", "-o", "ssl_chain_cert="+m.TLS.Cert+",ssl_key="+m.TLS.Key))
}

func (m *Memcached) start(tb TB, options []string) *Memcached {
	tb.Helper()
	m.owner = plainAccount(tb, "memcache")
	m.Process = start(tb, program{
		name:  "memcached",
		path:  chosen(tb, "HOLDFAST_MEMCACHED", "memcached", "memcached"),
		owner: m.owner,
		setup: func(tb TB, dir string) ([]string, error) { return m.arguments(tb, dir, options) },
		ready: m.ready,
	})
	return m
}

// arguments picks a port and returns the arguments. If arguments contradict each other,
// the last argument wins.
func (m *Memcached) arguments(tb TB, dir string, options []string) ([]string, error) {
	m.port = reserve(tb)
	args := []string{"-l", loopback, "-p", strconv.Itoa(m.port), "-U", "0"}
	if m.user != "" {
		m.users = filepath.Join(dir, "users")
		if err := m.owner.write(m.users, m.user+":"+m.password); err != nil {
			return nil, err
		}
		args = append(args, "-Y", m.users)
	}
	return slices.Concat(args, options), nil
}

func (m *Memcached) ready(pid int) error {
	answers, err := m.stat("stats", "pid", glance)
	if err == nil && answers != strconv.Itoa(pid) {
		err = fmt.Errorf("process %s answers at %s instead of %d", answers, m.Addr(), pid)
	}
	return err
}

// SetPassword replaces the password of a server that demands one. New connections need the new
// password.
func (m *Memcached) SetPassword(password string) {
	m.tb.Helper()
	if err := m.owner.write(m.users, m.user+":"+password); err != nil {
		m.tb.Fatalf("%v", err)
	}
	m.password = password
	m.act("hang up", func() error { return m.cmd.Process.Signal(syscall.SIGHUP) })
	Await(m.tb, "the new password", func() error {
		_, err := m.stats("stats", glance)
		return err
	})
}

// Addr returns the host and port.
func (m *Memcached) Addr() string { return address(m.port) }

// URL returns the address as memcached://host:port, with the name and the password if the
// server demands a password.
func (m *Memcached) URL() string {
	u := url.URL{Scheme: "memcached", Host: m.Addr()}
	if m.user != "" {
		u.User = url.UserPassword(m.user, m.password)
	}
	return u.String()
}

// Do sends a command over a new connection, and returns the first line of the reply. If
// the command has a value, the value is on a second line.
func (m *Memcached) Do(command string) (string, error) {
	conn, lines, err := m.ask(command, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return line(lines)
}

// Must is Do for commands whose answer is the line want.
func (m *Memcached) Must(command, want string) {
	m.tb.Helper()
	if got, err := m.Do(command); err != nil || got != want {
		m.tb.Fatalf("%s %.80q: %q, %v; want %s", m.Addr(), command, got, err, want)
	}
}

// Stat returns a number from the answer to "stats".
func (m *Memcached) Stat(name string) int {
	m.tb.Helper()
	text, err := m.stat("stats", name, patience)
	if err != nil {
		m.tb.Fatalf("%s: %v", m.Addr(), err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		m.tb.Fatalf("%s: %s is %q", m.Addr(), name, text)
	}
	return n
}

func (m *Memcached) stat(command, name string, limit time.Duration) (string, error) {
	all, err := m.stats(command, limit)
	value, ok := all[name]
	if err == nil && !ok {
		err = fmt.Errorf("%s has no %s", command, name)
	}
	return value, err
}

// stats returns all values of a stats command.
func (m *Memcached) stats(command string, limit time.Duration) (map[string]string, error) {
	conn, lines, err := m.ask(command, limit)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	all := make(map[string]string)
	for {
		text, err := line(lines)
		if err != nil {
			return nil, err
		}
		rest, stat := strings.CutPrefix(text, "STAT ")
		if text == "END" {
			return all, nil
		}
		if !stat {
			return nil, fmt.Errorf("%s: %s", command, text)
		}
		name, value, _ := strings.Cut(rest, " ")
		all[name] = value
	}
}

// ask sends a command, and returns the connection and the answer.
func (m *Memcached) ask(command string, limit time.Duration) (conn net.Conn, lines *bufio.Reader, err error) {
	dialer := &net.Dialer{Timeout: limit}
	if m.TLS != nil {
		conn, err = tls.DialWithDialer(dialer, "tcp", m.Addr(), m.TLS.client)
	} else {
		conn, err = dialer.Dial("tcp", m.Addr())
	}
	if err != nil {
		return nil, nil, err
	}
	lines = bufio.NewReader(conn)
	err = conn.SetDeadline(time.Now().Add(limit))
	if err == nil && m.user != "" {
		secret := m.user + " " + m.password
		_, err = fmt.Fprintf(conn, "set user 0 0 %d\r\n%s\r\n", len(secret), secret)
		if err == nil {
			err = accepted(lines)
		}
	}
	if err == nil {
		_, err = io.WriteString(conn, command+"\r\n")
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, lines, nil
}

func accepted(lines *bufio.Reader) error {
	text, err := line(lines)
	if err == nil && text != "STORED" {
		err = errors.New(text)
	}
	return err
}

func line(lines *bufio.Reader) (string, error) {
	text, err := lines.ReadString('\n')
	return strings.TrimRight(text, "\r\n"), err
}
