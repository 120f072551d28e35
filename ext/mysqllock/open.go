package mysqllock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
)

func init() {
	driver.Register("mysql", open)
	driver.Register("mariadb", open)
}

// open connects to the server that a URL names.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	settings, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // as what Params finds wrong
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	if settings.session != nil {
		return openSession(ctx, settings.config, settings.session)
	}
	connector, err := mysql.NewConnector(settings.config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(settings.conns)
	db.SetMaxIdleConns(settings.conns)
	db.SetConnMaxIdleTime(idle)
	db.SetConnMaxLifetime(lifetime)
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, err
	}
	s := New(db, settings.opts)
	s.close = db.Close
	return s, nil
}

// idle is how long a connection without use is kept: less than any server
// waits.
const idle = 30 * time.Second

// lifetime is how long any connection is kept, so that those who only read
// follow the address of the server, too, when another has it.
const lifetime = 3 * time.Minute

// settings are what a URL says.
type settings struct {
	config *mysql.Config
	conns  int
	opts   *Options

	session *SessionOptions // nil in lease mode
}

// parse reads a URL.
func parse(u *url.URL) (*settings, error) {
	p := driver.NewParams(u)
	s := &settings{config: mysql.NewConfig()}
	table := p.String("table", "")
	if p.OneOf("mode", "lease", "session") == "session" {
		s.session = &SessionOptions{Table: table}
	} else {
		s.opts = &Options{Table: table}
		s.conns = p.Int("conns", 4, 1, 100)
	}
	mode := p.OneOf("tls", "", "true", "false", "preferred", "skip-verify")
	ca, cert, key := p.String("ca", ""), p.String("cert", ""), p.String("key", "")
	socket := p.String("socket", "")
	// A server may be set up to commit nothing by itself. None notices that a client has
	// left while its statement waits for a row: so each waits a second, and is sent again
	// if somebody still waits for it.
	s.config.Params = map[string]string{"autocommit": "1", "innodb_lock_wait_timeout": "1"}
	// A primary that another has replaced may stay up and refuse to write.
	s.config.RejectReadOnly = true
	s.config.Timeout = p.Duration("connect_timeout", 5*time.Second, 100*time.Millisecond, time.Hour)
	if err := p.Err(); err != nil {
		return nil, err
	}
	s.config.Logger = &mysql.NopLogger{} // What it would say, the errors say.
	if u.Opaque != "" || u.Fragment != "" || (u.Host == "") == (socket == "") {
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
	return s, s.encrypt(u.Hostname(), mode, ca, cert, key)
}

func address(host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		return net.JoinHostPort(strings.Trim(host, "[]"), "3306")
	}
	return host
}

// encrypt chooses TLS. A server that is not on this machine must prove its name
// unless the URL says otherwise.
func (s *settings) encrypt(host, mode, ca, cert, key string) error {
	if mode == "" && ca+cert+key == "" {
		mode = "true"
		if ip := net.ParseIP(host); s.config.Net == "unix" || host == "localhost" || ip != nil && ip.IsLoopback() {
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
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, InsecureSkipVerify: mode == "skip-verify"}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s has no certificate in PEM", ca)
		}
	}
	if (cert == "") != (key == "") {
		return errors.New("cert and key go together")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	s.config.TLS = config
	return nil
}
