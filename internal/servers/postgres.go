package servers

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/must"
)

const postgresUser, postgresPassword = "postgres", "secret"

// A Postgres is a PostgreSQL server. The superuser is "postgres" with the password
// "secret", and the server demands the password.
type Postgres struct {
	*Process
	TLS *Certificates // nil if the server speaks plain text only

	bin   string // the folder of the programs
	owner *account
	data  string // the folder, "" until filled
	port  int

	at *url.URL // of a server that was already running, else nil
}

// StartPostgres starts a server that listens on TCP only. Options are extra lines of
// postgresql.conf, such as "max_connections = 20". The server is as durable as the
// defaults of PostgreSQL. With "fsync = off" the data may be in memory.
func StartPostgres(tb TB, options ...string) *Postgres {
	tb.Helper()
	p := &Postgres{bin: postgresFolder(tb), owner: plainAccount(tb, "postgres")}
	p.start(tb, options, p.initialize)
	return p
}

// StartPostgresTLS is StartPostgres for a server that also speaks TLS.
func StartPostgresTLS(tb TB, options ...string) *Postgres {
	tb.Helper()
	p := &Postgres{bin: postgresFolder(tb), owner: plainAccount(tb, "postgres"), TLS: newCertificates(tb)}
	p.TLS.own(tb, p.owner)
	p.start(tb, append(slices.Clone(options), "ssl = on",
		"ssl_ca_file = '"+p.TLS.CA+"'", "ssl_cert_file = '"+p.TLS.Cert+"'", "ssl_key_file = '"+p.TLS.Key+"'"), p.initialize)
	return p
}

// start starts a server whose data folder fill creates.
func (p *Postgres) start(tb TB, options []string, fill func(data string) error) {
	tb.Helper()
	p.Process = start(tb, program{
		name:  "postgres",
		path:  p.program("postgres"),
		owner: p.owner,
		quit:  syscall.SIGINT, // SIGTERM waits until all clients have left
		setup: func(tb TB, dir string) (args []string, err error) {
			if p.data == "" {
				data := filepath.Join(dir, "data")
				if err := fill(data); err != nil {
					return nil, err
				}
				p.data = data
			}
			p.port = reserve(tb)
			return []string{"-D", p.data}, p.write(options)
		},
		ready:    p.ready,
		volatile: slices.Contains(options, "fsync = off"),
		forget:   p.forget,
	})
}

// initialize makes an empty database.
func (p *Postgres) initialize(data string) error {
	alter := fmt.Sprintf("ALTER USER %s PASSWORD '%s'\n", postgresUser, Verifier(postgresPassword))
	arguments := []string{"--username=" + postgresUser, "--auth=scram-sha-256", "--no-locale", "--encoding=UTF8"}
	return template{
		program: p.program("postgres"),
		terms:   append(arguments, alter),
		owner:   p.owner,
		make: func(data string) error {
			dir := filepath.Dir(data)
			file := filepath.Join(dir, "password")
			if err := p.owner.write(file, postgresPassword); err != nil {
				return err
			}
			// The data need not reach the disk: no test goes on after a crash of the machine.
			err := p.owner.tool(dir, p.program("initdb"), append(arguments, "--pgdata="+data, "--pwfile="+file, "--no-sync")...)
			if err != nil {
				return err
			}
			// Before PostgreSQL 14, initdb reads 99 bytes of a password. A verifier is longer.
			return p.owner.feed(alter, dir, p.program("postgres"), "--single", "-F", "-D", data, "postgres")
		},
	}.fill(data)
}

// Verifier returns what a server stores instead of a password, and accepts as a password.
// A single round of hashing, instead of 4096, makes a connection cheap: tests open
// thousands.
func Verifier(password string) string {
	const rounds = 1
	salt := []byte("holdfast")
	salted := must.Get(pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size))
	key := func(name string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(name))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(key("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt), text(stored[:]), text(key("Server Key")))
}

// write adds lines to postgresql.conf. If lines contradict each other, the last line wins.
func (p *Postgres) write(options []string) error {
	lines := append([]string{
		"",
		"listen_addresses = '" + loopback + "'",
		"port = " + strconv.Itoa(p.port),
		"unix_socket_directories = ''",
		"shared_buffers = 16MB",
		"dynamic_shared_memory_type = mmap", // removed with the folder of a killed server
	}, options...)
	file, err := os.OpenFile(filepath.Join(p.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, file.Close())
}

// pidFile returns the lines of the status file of the server, counted from 1 as in the
// documentation. A killed server leaves the file behind.
func (p *Postgres) pidFile() (lines [9]string, err error) {
	text, err := os.ReadFile(filepath.Join(p.data, "postmaster.pid"))
	for i, line := range strings.Split(string(text), "\n") {
		if i+1 < len(lines) {
			lines[i+1] = strings.TrimSpace(line)
		}
	}
	return lines, err
}

func (p *Postgres) ready(pid int) error {
	lines, err := p.pidFile()
	if err != nil {
		return err
	}
	if owner := lines[1]; owner != strconv.Itoa(pid) {
		return fmt.Errorf("process %s has the data instead of %d", owner, pid)
	}
	if status := lines[8]; status != "ready" {
		return fmt.Errorf("the status is %q", status)
	}
	return nil
}

// forget removes the small shared memory segment that a killed server leaves. A system has
// a limited number of segments.
func (p *Postgres) forget() {
	if lines, err := p.pidFile(); err == nil {
		if segment := strings.Fields(lines[7]); len(segment) == 2 {
			exec.Command("ipcrm", "-m", segment[1]).Run() // no harm if the segment is gone
		}
	}
}

// Addr returns the host and port.
func (p *Postgres) Addr() string {
	if p.at != nil {
		return p.at.Host
	}
	return address(p.port)
}

// URL returns the address with the name and the password of the superuser.
func (p *Postgres) URL() string {
	if p.at != nil {
		return p.at.String()
	}
	return postgresURL(p.Addr())
}

func postgresURL(addr string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(postgresUser, postgresPassword),
		Host:     addr,
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Database makes an empty database that is removed with the test, and returns the server
// as seen by clients of the database. The process is shared: call Kill and the like only
// if no other test uses the server.
func (p *Postgres) Database(tb TB) *Postgres {
	tb.Helper()
	at, err := url.Parse(p.URL())
	if err != nil {
		tb.Fatalf("%v", err)
	}
	own := *p
	own.at = database(tb, at, func(sql string) error { _, err := p.Do(sql); return err }, " WITH (FORCE)")
	return &own
}

// Do runs SQL statements over a new connection, each in a separate transaction, and stops
// at the first statement that fails. Do returns the rows as lines, with the values
// separated by "|". An error shows the message of the server.
func (p *Postgres) Do(sql string) (string, error) {
	cmd := p.psql(p.URL())
	cmd.Args = append(cmd.Args, "--set=ON_ERROR_STOP=1")
	return query(cmd, sql)
}

// psql is the client program for a server at a URL.
func (p *Postgres) psql(at string) *exec.Cmd {
	cmd := exec.Command(p.program("psql"), "--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--dbname="+at)
	cmd.Env = append(os.Environ(), "LC_ALL=C") // for messages in English
	return cmd
}

// Must is Do for statements that cannot fail.
func (p *Postgres) Must(sql string) string {
	p.tb.Helper()
	rows, err := p.Do(sql)
	if err != nil {
		p.tb.Fatalf("%s: %s: %v", p.Addr(), sql, err)
	}
	return rows
}

func (p *Postgres) program(name string) string { return filepath.Join(p.bin, name) }

// postgresFolder returns the folder with the programs of PostgreSQL: $HOLDFAST_POSTGRES,
// else the folder of the first server in PATH, else the newest version of Debian. Debian
// keeps the programs out of PATH.
func postgresFolder(tb TB) string {
	tb.Helper()
	if chosen := os.Getenv("HOLDFAST_POSTGRES"); chosen != "" {
		return chosen
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path) // psql of the same version is in this folder
		}
	}
	newest, folder := 0.0, ""
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is right
	for _, path := range found {
		bin := filepath.Dir(path)
		version, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(bin)), 64)
		if version > newest {
			newest, folder = version, bin
		}
	}
	if folder == "" {
		missing(tb, "PostgreSQL", "postgresql")
	}
	return folder
}
