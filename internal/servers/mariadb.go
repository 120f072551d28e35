package servers

import (
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	mariaUser, mariaPassword = "root", "secret"
	mariaDatabase            = "holdfast"
	mariaPackage             = "mariadb-server"
)

// A MariaDB is a MariaDB or MySQL server. The superuser is "root" with the password
// "secret", and the database "holdfast" is empty.
type MariaDB struct {
	*Process
	TLS *Certificates // nil if the server has no certificate from package servers

	mariaPrograms
	client string // the program
	owner  *account
	data   string // the folder, "" until initialize has filled it
	port   int

	at *url.URL // of a server that was already running, else nil
}

// StartMariaDB starts a server that listens on TCP only. Options are extra lines of the
// section [mysqld] of the configuration, such as "wait_timeout = 5". The server is as
// durable as the defaults of MariaDB. The data are never in memory: InnoDB writes the log of
// such a folder as to persistent memory, which users do not have.
func StartMariaDB(tb TB, options ...string) *MariaDB {
	tb.Helper()
	return prepareMariaDB(tb).start(tb, options)
}

// StartMariaDBTLS is StartMariaDB for a server that also speaks TLS.
func StartMariaDBTLS(tb TB, options ...string) *MariaDB {
	tb.Helper()
	m := prepareMariaDB(tb)
	m.TLS = newCertificates(tb)
	m.TLS.own(tb, m.owner)
	return m.start(tb, append(slices.Clone(options), "ssl_ca = "+m.TLS.CA, "ssl_cert = "+m.TLS.Cert, "ssl_key = "+m.TLS.Key))
}

func prepareMariaDB(tb TB) *MariaDB {
	tb.Helper()
	return &MariaDB{
		mariaPrograms: findMariaPrograms(tb),
		client:        Installed(tb, mariaPackage, "mariadb"),
		owner:         plainAccount(tb, "mysql"),
	}
}

func (m *MariaDB) start(tb TB, options []string) *MariaDB {
	tb.Helper()
	m.Process = start(tb, program{
		name:  "mariadb",
		path:  m.server,
		owner: m.owner,
		setup: func(tb TB, dir string) ([]string, error) { return m.configure(tb, dir, options) },
		ready: func(int) error { return m.ready() },
	})
	return m
}

// configure picks a port, writes the configuration and returns the argument that names the
// file. If lines contradict each other, the last line wins.
func (m *MariaDB) configure(tb TB, dir string, options []string) (args []string, err error) {
	m.port = reserve(tb)
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "my.cnf")
	lines := []string{
		"[mysqld]",
		"datadir = " + data,
		"tmpdir = " + dir, // servers with the same process id, in containers, would share files
		"bind_address = " + loopback,
		"port = " + strconv.Itoa(m.port),
		"socket = ", // none: the path could be too long
		"pid_file = " + filepath.Join(dir, "pid"),
		"skip_name_resolve",
		"innodb_buffer_pool_size = 16M",
		"key_buffer_size = 1M",
	}
	if m.mysql() {
		lines = append(lines, "skip_log_bin", "mysqlx = OFF", "secure_file_priv = NULL")
	} else {
		lines = append(lines, "innodb_log_file_size = 16M", "aria_pagecache_buffer_size = 4M")
	}
	if m.base != "" {
		lines = append(lines, "basedir = "+m.base)
	}
	args = []string{"--defaults-file=" + file}
	if m.data == "" {
		if err := m.owner.write(file, lines...); err != nil {
			return nil, err
		}
		if err := m.initialize(data, args[0]); err != nil {
			return nil, err
		}
		m.data = data
	}
	return args, m.owner.write(file, append(lines, options...)...)
}

// initialize makes the database and a superuser that may connect by TCP.
func (m *MariaDB) initialize(data, config string) error {
	statements := []string{
		fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s';", mariaUser, mariaPassword),
		fmt.Sprintf("GRANT ALL ON *.* TO %s@'%%' WITH GRANT OPTION;", mariaUser),
		fmt.Sprintf("CREATE DATABASE %s;", mariaDatabase),
	}
	var arguments []string
	first := filepath.Join(filepath.Dir(data), "first.sql")
	file := "--init-file=" + first
	if m.mysql() {
		arguments = []string{"--initialize-insecure"}
	} else {
		statements = append([]string{
			"DELETE FROM mysql.global_priv WHERE User = 'root';", // the accounts without a password
			"FLUSH PRIVILEGES;",
		}, statements...)
		arguments = []string{"--skip-test-db", "--auth-root-authentication-method=normal"}
		file = "--extra-file=" + first
	}
	return template{
		program: m.server,
		terms:   append(statements, arguments...),
		owner:   m.owner,
		make: func(string) error {
			if err := m.owner.write(first, statements...); err != nil {
				return err
			}
			return m.owner.tool(filepath.Dir(first), m.install, append([]string{config, file}, arguments...)...)
		},
	}.fill(data)
}

// ready returns nil once the server with this data answers.
func (m *MariaDB) ready() error {
	data, err := m.Do("SELECT @@datadir")
	if err == nil && filepath.Clean(data) != m.data {
		err = fmt.Errorf("a server with the data %s answers at %s instead", data, m.Addr())
	}
	return err
}

// Addr returns the host and port.
func (m *MariaDB) Addr() string { return m.location().Host }

// URL returns the address with the name and the password of the superuser, and
// the database.
func (m *MariaDB) URL() string { return m.location().String() }

func (m *MariaDB) location() *url.URL {
	if m.at != nil {
		return m.at
	}
	return &url.URL{
		Scheme: "mysql",
		User:   url.UserPassword(mariaUser, mariaPassword),
		Host:   address(m.port),
		Path:   "/" + mariaDatabase,
	}
}

// Database is like [Postgres.Database].
func (m *MariaDB) Database(tb TB) *MariaDB {
	tb.Helper()
	own := *m
	own.at = database(tb, m.location(), func(sql string) error { _, err := m.Do(sql); return err }, "")
	return &own
}

// Do runs SQL statements over a new connection, each in a separate transaction, and stops
// at the first statement that fails. Do returns the rows as lines, with the values
// separated by tabs. An error shows the message of the server.
func (m *MariaDB) Do(sql string) (string, error) {
	password, _ := m.location().User.Password()
	return query(m.console(m.Addr(), password), sql)
}

// console is the client program for an address.
func (m *MariaDB) console(addr, password string) *exec.Cmd {
	host, port, _ := net.SplitHostPort(addr)
	at := m.location()
	return exec.Command(m.client, "--no-defaults", "--protocol=tcp", "--host="+host, "--port="+port,
		"--user="+at.User.Username(), "--password="+password, "--database="+strings.Trim(at.Path, "/"),
		"--batch", "--raw", "--skip-column-names", "--unbuffered", "--connect-timeout=60")
}

// Must is Do for statements that cannot fail.
func (m *MariaDB) Must(sql string) string {
	m.tb.Helper()
	rows, err := m.Do(sql)
	if err != nil {
		m.tb.Fatalf("%s: %s: %v", m.Addr(), sql, err)
	}
	return rows
}
