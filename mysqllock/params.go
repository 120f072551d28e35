package mysqllock

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

// ignored lists parameters of go-sql-driver, and variables of the server, for the
// statements of the application and their results. The statements of the store autocommit,
// and their limits are the limits of their callers.
var ignored = []string{
	"allowAllFiles", "charset", "checkConnLiveness", "clientFoundRows", "collation", "columnsWithAlias", "interpolateParams",
	"loc", "maxAllowedPacket", "multiStatements", "parseTime", "readTimeout", "rejectReadOnly", "timeTruncate", "writeTimeout",
	"autocommit", "completion_type", "innodb_lock_wait_timeout", "lock_wait_timeout", "max_execution_time", "max_statement_time", "sql_mode",
	"time_zone", "transaction_isolation", "transaction_read_only", "tx_isolation", "tx_read_only", "wait_timeout",
}

// settled are variables of the server that the connections of a store need. A server may have
// autocommit off, or begin a transaction after each commit. No server notices that a client
// has left while its statement waits for a row or a table. A statement therefore waits a
// second for each, and is sent again if a caller still waits.
var settled = map[string]string{
	"autocommit": "1", "completion_type": "0", "innodb_lock_wait_timeout": "1", "lock_wait_timeout": "1",
}

// impatient lets a statement of MariaDB fail at once if the row is locked, to be sent again after
// a growing pause. The statements that wait for one row cost the server the square of their number.
// The minimum of MySQL is a second.
const impatient = "if(version() LIKE '%MariaDB%', 0, 1)"

// settings are the settings of a URL.
type settings struct {
	config *mysql.Config
	conns  int
	opts   *Options
	wake   bool

	session *SessionOptions // nil in lease mode
}

// parse reads a URL.
func parse(u *url.URL) (*settings, error) {
	p := driver.NewParams(u)
	s := &settings{config: mysql.NewConfig()}
	table := p.Text("table", "")
	wake := p.Bool("wake", true)
	if p.OneOf("mode", "lease", "session") == "session" {
		s.session = &SessionOptions{Table: table, Poll: !wake}
	} else {
		s.opts = &Options{Table: table}
		s.conns = p.Int("conns", 4, 1, 100)
		s.wake = wake
	}
	mode := cmp.Or(
		driver.Parse(p, "tls", "", "one of true, false, preferred, skip-verify", oneOf(tlsModes)),
		driver.Parse(p, "ssl-mode", "", "one of VERIFY_IDENTITY, DISABLED, PREFERRED, REQUIRED", oneOf(sslModes)))
	ca := cmp.Or(p.Text("ca", ""), p.Text("ssl-ca", ""))
	cert := cmp.Or(p.Text("cert", ""), p.Text("ssl-cert", ""))
	key := cmp.Or(p.Text("key", ""), p.Text("ssl-key", ""))
	socket := p.Text("socket", "")
	s.config.Params = maps.Clone(settled)
	if s.session == nil {
		s.config.Params["innodb_lock_wait_timeout"] = impatient
	}
	// A primary may stay up after a failover and refuse to write.
	s.config.RejectReadOnly = true
	s.config.Timeout = cmp.Or(p.Duration("connect_timeout", 0, 100*time.Millisecond, time.Hour),
		p.Duration("timeout", 5*time.Second, 100*time.Millisecond, time.Hour))
	s.config.AllowNativePasswords = p.Bool("allowNativePasswords", true)
	s.config.AllowCleartextPasswords = p.Bool("allowCleartextPasswords", false)
	s.config.AllowOldPasswords = p.Bool("allowOldPasswords", false)
	s.config.AllowFallbackToPlaintext = p.Bool("allowFallbackToPlaintext", false)
	s.config.ConnectionAttributes = p.Text("connectionAttributes", "")
	s.config.ServerPubKey = p.Text("serverPubKey", "")
	compress := p.Bool("compress", false)
	p.Ignore(ignored...)
	if err := p.Err(); err != nil {
		return nil, err
	}
	s.config.Logger = &mysql.NopLogger{} // The errors say the same as the logger.
	if u.Opaque != "" || u.Fragment != "" || strings.Contains(u.EscapedPath(), "@") || (u.Host == "") == (socket == "") {
		return nil, errors.New("want mysql://user:password@host:port/database, or mysql:///database?socket=/path")
	}
	s.config.DBName = strings.Trim(u.Path, "/")
	if s.config.DBName == "" || strings.Contains(s.config.DBName, "/") {
		return nil, errors.New("want the name of one database after the host")
	}
	if u.User != nil {
		s.config.User = u.User.Username()
		s.config.Passwd, _ = u.User.Password()
	}
	s.config.Net, s.config.Addr = "tcp", address(u.Host)
	if socket != "" {
		s.config.Net, s.config.Addr = "unix", socket
	}
	if err := s.config.Apply(mysql.EnableCompression(compress)); err != nil {
		return nil, err
	}
	return s, s.encrypt(u.Hostname(), mode, ca, cert, key)
}

// The values of tls, as in go-sql-driver, and of ssl-mode, as in the URLs of MySQL's shell.
var (
	tlsModes = map[string]string{"true": "true", "1": "true", "false": "false", "0": "false", "preferred": "preferred", "skip-verify": "skip-verify"}
	sslModes = map[string]string{"verify_identity": "true", "disabled": "false", "preferred": "preferred", "required": "skip-verify"}
)

func oneOf(modes map[string]string) func(string) (string, error) {
	return func(text string) (string, error) {
		if mode, ok := modes[strings.ToLower(text)]; ok {
			return mode, nil
		}
		return "", strconv.ErrSyntax
	}
}

// warnings warns of a password that may travel unencrypted.
func (s *settings) warnings() []string {
	plain := s.config.TLS == nil && (s.config.TLSConfig == "false" || s.config.TLSConfig == "preferred") || s.config.AllowFallbackToPlaintext
	if !plain || s.config.Passwd == "" || s.config.Net == "unix" {
		return nil
	}
	return hosturl.Plain([]string{s.config.Addr}, "use tls=true")
}

func address(host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		return net.JoinHostPort(strings.Trim(host, "[]"), "3306")
	}
	return host
}

// encrypt chooses TLS. A server on a remote machine must prove its name unless the URL says
// otherwise.
func (s *settings) encrypt(host, mode, ca, cert, key string) error {
	if mode == "" && ca+cert+key == "" {
		mode = "true"
		if s.config.Net == "unix" || !hosturl.Remote(host) {
			mode = "false"
		}
	}
	if ca+cert+key == "" {
		s.config.TLSConfig = mode
		return nil
	}
	if mode == "false" || mode == "preferred" {
		return fmt.Errorf("ca, cert and key go with tls=true, not tls=%s", mode)
	}
	config, err := hosturl.TLS(ca, cert, key, host)
	if err != nil {
		return err
	}
	config.InsecureSkipVerify = mode == "skip-verify"
	s.config.TLS = config
	return nil
}
