package servers

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Redis is a Redis or Valkey server.
type Redis struct {
	*Process
	TLS *Certificates // nil if the server speaks plain text

	port int
}

// StartRedis starts a server that keeps everything in memory only. Options are extra lines
// of the configuration, such as "appendonly yes" or "user worker on >secret ~* +@all". The
// user "default" must not change: package servers uses "default".
func StartRedis(tb TB, options ...string) *Redis {
	tb.Helper()
	return new(Redis).start(tb, options)
}

// StartRedisTLS is StartRedis for a server that speaks TLS only. The server asks clients
// for no certificate, unless the option "tls-auth-clients yes" is given.
func StartRedisTLS(tb TB, options ...string) *Redis {
	tb.Helper()
	r := &Redis{TLS: newCertificates(tb)}
	return r.start(tb, options)
}

func (r *Redis) start(tb TB, options []string) *Redis {
	tb.Helper()
	r.Process = start(tb, program{
		name:  "redis",
		path:  redisBinary(tb),
		setup: func(tb TB, dir string) ([]string, error) { return r.configure(tb, dir, inMemory, options) },
		ready: r.ready,
	})
	return r
}

// StartMasters starts n independent servers.
func StartMasters(tb TB, n int, options ...string) []*Redis {
	tb.Helper()
	all := make([]*Redis, n)
	for i := range all {
		all[i] = StartRedis(tb, options...)
	}
	return all
}

// redisBinary returns $HOLDFAST_REDIS, else the first installed program.
func redisBinary(tb TB) string {
	tb.Helper()
	return chosen(tb, "HOLDFAST_REDIS", "redis-server or valkey-server", "redis-server", "valkey-server")
}

// inMemory is the configuration of all servers but Sentinels.
var inMemory = []string{
	`save ""`,
	"repl-diskless-sync-delay 0", // no replica waits for more replicas
	"repl-timeout 5",
	"repl-ping-replica-period 1",
}

// configure picks a port, writes the configuration and returns the arguments. If lines
// contradict each other, the last line wins.
func (r *Redis) configure(tb TB, dir string, lines ...[]string) (args []string, err error) {
	r.port = reserve(tb)
	port := strconv.Itoa(r.port)
	head := []string{"bind " + loopback, "port " + port, "dir " + strconv.Quote(dir)}
	if r.TLS != nil {
		head = append(head, "port 0", "tls-port "+port, "tls-auth-clients optional",
			"tls-ca-cert-file "+strconv.Quote(r.TLS.CA),
			"tls-cert-file "+strconv.Quote(r.TLS.Cert),
			"tls-key-file "+strconv.Quote(r.TLS.Key))
	}
	text := strings.Join(slices.Concat(head, slices.Concat(lines...)), "\n")
	file := filepath.Join(dir, "redis.conf")
	return []string{file}, os.WriteFile(file, []byte(text+"\n"), 0o600)
}

func (r *Redis) ready(pid int) error {
	text, err := r.info(glance, "everything")
	if err != nil {
		return err
	}
	if answers := field(text, "process_id"); answers != strconv.Itoa(pid) {
		return fmt.Errorf("process %s answers at %s instead of %d", answers, r.Addr(), pid)
	}
	if field(text, "loading") == "1" {
		return errors.New("it still loads its data")
	}
	return nil
}

// Addr returns the host and port.
func (r *Redis) Addr() string { return address(r.port) }

// URL returns the address as redis://host:port, or rediss:// with TLS.
func (r *Redis) URL() string {
	if r.TLS != nil {
		return "rediss://" + r.Addr()
	}
	return "redis://" + r.Addr()
}

// Do sends one command over a new connection, and returns the reply: a string, an int64,
// nil, or a []any of these types. An error reply of the server is a RedisError.
func (r *Redis) Do(args ...string) (any, error) { return r.do(patience, args...) }

// Dialog returns Do over one connection, which ends with the test. One call waits for the other.
func (r *Redis) Dialog() (do func(args ...string) (any, error)) {
	r.tb.Helper()
	conn, err := r.dial(patience)
	if err != nil {
		r.tb.Fatalf("%v", err)
	}
	r.tb.Cleanup(func() { conn.Close() })
	var turn sync.Mutex
	return func(args ...string) (any, error) {
		turn.Lock()
		defer turn.Unlock()
		return roundTrip(conn, patience, args)
	}
}

func (r *Redis) do(limit time.Duration, args ...string) (any, error) {
	conn, err := r.dial(limit)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return roundTrip(conn, limit, args)
}

func (r *Redis) dial(limit time.Duration) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: limit}
	if r.TLS != nil {
		return tls.DialWithDialer(dialer, "tcp", r.Addr(), r.TLS.client)
	}
	return dialer.Dial("tcp", r.Addr())
}

// Must is Do for commands that cannot fail.
func (r *Redis) Must(args ...string) any {
	r.tb.Helper()
	reply, err := r.Do(args...)
	if err != nil {
		r.tb.Fatalf("%s %s: %v", r.Addr(), strings.Join(args, " "), err)
	}
	return reply
}

// Info returns a field of INFO, or "" if INFO has no such field.
func (r *Redis) Info(name string) string {
	r.tb.Helper()
	text, err := r.info(patience, "everything")
	if err != nil {
		r.tb.Fatalf("%s: %v", r.Addr(), err)
	}
	return field(text, name)
}

// replication returns a field of INFO about replication.
func (r *Redis) replication(name string) (string, error) {
	text, err := r.info(glance, "replication")
	return field(text, name), err
}

func (r *Redis) info(limit time.Duration, section string) (string, error) {
	reply, err := r.do(limit, "INFO", section)
	text, _ := reply.(string)
	return text, err
}

// field returns the value of a line "name:value", or "" if there is no such line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// RestartEmpty restarts the server without its data on disk. The server keeps its
// knowledge of the cluster.
func (r *Redis) RestartEmpty() {
	r.tb.Helper()
	r.restart(func() error {
		for _, data := range []string{"dump.rdb", "appendonlydir"} {
			if err := os.RemoveAll(filepath.Join(r.dir, data)); err != nil {
				return err
			}
		}
		return nil
	})
}

// FlushScripts removes all scripts from the server.
func (r *Redis) FlushScripts() {
	r.tb.Helper()
	r.Must("SCRIPT", "FLUSH", "SYNC")
}

// AddUser adds or replaces a user with ACL rules such as "~app:*", "&*", "+get". After a
// restart, the server has only the users of the configuration.
func (r *Redis) AddUser(name, password string, rules ...string) {
	r.tb.Helper()
	r.Must(slices.Concat([]string{"ACL", "SETUSER", name, "reset", "on", ">" + password}, rules)...)
}

// KillClients cuts the connections of all clients but not of replicas.
func (r *Redis) KillClients() {
	r.tb.Helper()
	r.Must("CLIENT", "KILL", "TYPE", "normal")
	r.Must("CLIENT", "KILL", "TYPE", "pubsub")
}

// ListsClients reports whether a line of CLIENT LIST is about the connection that asked for
// the list. Before version 7, Redis does not name the subcommand.
func ListsClients(line string) bool {
	return strings.Contains(line, " cmd=client|list ") || strings.Contains(line, " cmd=client ")
}

// KillClient cuts the connection of one client, picked at random. KillClient does nothing
// if there is no client.
func (r *Redis) KillClient() {
	r.tb.Helper()
	var ids []string
	for _, kind := range []string{"normal", "pubsub"} {
		text, _ := r.Must("CLIENT", "LIST", "TYPE", kind).(string)
		for line := range strings.Lines(text) {
			if ListsClients(line) {
				continue // the connection of this call
			}
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		r.Must("CLIENT", "KILL", "ID", ids[rand.IntN(len(ids))])
	}
}
