package mssqllock

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

// passed lists the parameters that go to the client as they are.
var passed = []string{
	"database", "encrypt", "trustservercertificate", "certificate", "servercertificate", "hostnameincertificate", "tlsmin",
	"app name", "workstation id", "packet size", "keepalive", "protocol", "serverspn", "epa enabled", "multisubnetfailover",
	"failoverpartner", "failoverport", "failoverpartnerspn", "notraceid",
}

// ignored lists parameters for the statements of the application and their results.
var ignored = []string{"applicationintent", "columnencryption", "connection timeout", "dial timeout", "disableretry", "guid conversion", "log", "timezone"}

// settings are the settings of a URL.
type settings struct {
	config msdsn.Config
	conns  int
	table  string
	wake   bool
}

// parse reads a URL.
func parse(u *url.URL) (*settings, error) {
	// The clients of SQL Server tell parameters apart without regard to case.
	query := make(url.Values)
	for name, values := range u.Query() {
		name = strings.ToLower(name)
		query[name] = append(query[name], values...)
	}
	lower := *u
	lower.RawQuery = query.Encode()
	p := driver.NewParams(&lower)
	s := &settings{table: p.Text("table", ""), conns: p.Int("conns", 4, 1, 100), wake: p.Bool("wake", true)}
	p.OneOf("mode", "lease")
	limit := p.Duration("connect_timeout", 5*time.Second, 100*time.Millisecond, time.Hour)
	client := make(url.Values)
	for _, name := range passed {
		if value := p.Text(name, ""); value != "" {
			client.Set(name, value)
		}
	}
	p.Ignore(ignored...)
	if err := p.Err(); err != nil {
		return nil, err
	}
	if u.Opaque != "" || u.Fragment != "" || u.Host == "" || strings.Contains(u.EscapedPath(), "@") || client.Get("database") == "" {
		return nil, errors.New("want sqlserver://user:password@host:port?database=NAME, or with /INSTANCE after the host")
	}
	if client.Get("encrypt") == "" && hosturl.Remote(u.Hostname()) {
		client.Set("encrypt", "true")
	}
	lower.Scheme, lower.RawQuery = "sqlserver", client.Encode()
	var err error
	if s.config, err = msdsn.Parse(lower.String()); err != nil {
		return nil, fmt.Errorf("SQL Server's client: %w", err)
	}
	s.config.DialTimeout, s.config.ConnTimeout = limit, 0
	return s, nil
}

// warnings warns of a password that may travel unencrypted, or to a server that has not proved
// its name.
func (s *settings) warnings() []string {
	if s.config.Password == "" || s.config.Encryption == msdsn.EncryptionRequired || s.config.Encryption == msdsn.EncryptionStrict {
		return nil
	}
	return hosturl.Plain([]string{s.config.Host}, "use encrypt=true")
}
