package servers

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// A PgBouncer is a connection pooler in front of a Postgres, with the same users,
// passwords and databases.
type PgBouncer struct {
	*Process

	server *Postgres
	owner  *account
	config string // the file
	port   int
}

// StartPgBouncer starts a pooler that lends a connection for a "session", a "transaction"
// or a "statement". Options are extra lines of the section [pgbouncer] of the
// configuration, such as "default_pool_size = 2".
func StartPgBouncer(tb TB, server *Postgres, mode string, options ...string) *PgBouncer {
	tb.Helper()
	b := &PgBouncer{server: server, owner: plainAccount(tb, "postgres")}
	b.Process = start(tb, program{
		name:  "pgbouncer",
		path:  chosen(tb, "HOLDFAST_PGBOUNCER", "pgbouncer", "pgbouncer"),
		owner: b.owner,
		setup: func(tb TB, dir string) ([]string, error) { return b.configure(tb, dir, mode, options) },
		ready: func(int) error { return b.ready() },
	})
	return b
}

// configure picks a port, writes the configuration and returns the argument that names the
// file. If lines contradict each other, the last line wins.
func (b *PgBouncer) configure(tb TB, dir, mode string, options []string) (args []string, err error) {
	b.port = reserve(tb)
	// The pooler asks the server for the passwords of all users but the superuser.
	users := filepath.Join(dir, "users")
	if err := b.owner.write(users, strconv.Quote(postgresUser)+" "+strconv.Quote(postgresPassword)); err != nil {
		return nil, err
	}
	b.config = filepath.Join(dir, "pgbouncer.ini")
	lines := append([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%d auth_user=%s", loopback, b.server.port, postgresUser),
		"[pgbouncer]",
		"listen_addr = " + loopback,
		"listen_port = " + strconv.Itoa(b.port),
		"unix_socket_dir =",
		"auth_type = scram-sha-256",
		"auth_file = " + users,
		"admin_users = " + postgresUser,
		"pool_mode = " + mode,
	}, options...)
	return []string{b.config}, b.owner.write(b.config, lines...)
}

// ready returns nil once the pooler with this configuration answers.
func (b *PgBouncer) ready() error {
	settings, err := query(b.server.psql(strings.Replace(b.URL(), "/postgres?", "/pgbouncer?", 1)), "SHOW CONFIG")
	if err == nil && !strings.Contains(settings, b.config) {
		err = fmt.Errorf("another pooler answers at %s", b.Addr())
	}
	return err
}

// Addr returns the host and port.
func (b *PgBouncer) Addr() string { return address(b.port) }

// URL returns the address with the name and the password of the superuser.
func (b *PgBouncer) URL() string { return postgresURL(b.Addr()) }
