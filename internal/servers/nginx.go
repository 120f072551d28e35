package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// An Nginx is an nginx web server.
type Nginx struct {
	*Process

	port    int
	pidFile string
}

// StartNginx starts an nginx with one site. site returns the content of the http block of
// an nginx.conf, and the block has to listen at addr.
func StartNginx(tb TB, site func(addr string) string) *Nginx {
	tb.Helper()
	n := &Nginx{}
	owner := plainAccount(tb, "www-data")
	n.Process = start(tb, program{
		name:  "nginx",
		path:  Installed(tb, "nginx", "nginx"),
		owner: owner,
		setup: func(tb TB, dir string) ([]string, error) { return n.configure(tb, owner, dir, site) },
		ready: n.ready,
	})
	return n
}

// configure picks a port, writes the configuration and returns the arguments.
func (n *Nginx) configure(tb TB, owner *account, dir string, site func(addr string) string) (args []string, err error) {
	n.port = reserve(tb)
	n.pidFile = filepath.Join(dir, "nginx.pid")
	lines := []string{
		"daemon off;",
		"pid " + strconv.Quote(n.pidFile) + ";",
		"error_log stderr;",
		"events { worker_connections 4096; }",
		"http {",
		"access_log off;",
	}
	// The default folders belong to the nginx of the system.
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		lines = append(lines, kind+"_temp_path "+kind+";")
	}
	file := filepath.Join(dir, "nginx.conf")
	err = owner.write(file, append(lines, site(n.Addr()), "}")...)
	return []string{"-p", dir, "-e", "stderr", "-c", file}, err
}

// ready returns nil once the server listens: nginx writes the pid file after that.
func (n *Nginx) ready(pid int) error {
	text, err := os.ReadFile(n.pidFile)
	if err == nil && strings.TrimSpace(string(text)) != strconv.Itoa(pid) {
		err = fmt.Errorf("%s is of process %q, not of %d", n.pidFile, text, pid)
	}
	return err
}

// Addr returns the host and port.
func (n *Nginx) Addr() string { return address(n.port) }

// URL returns the address as http://host:port.
func (n *Nginx) URL() string { return "http://" + n.Addr() }
