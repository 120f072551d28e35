package pglock

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

// passed lists the parameters that pgx reads, and settings of the server that name the
// client and the place of the table.
var passed = []string{
	"host", "port", "dbname", "user", "passfile", "service", "servicefile", "connect_timeout", "target_session_attrs",
	"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcertmode", "sslsni", "sslnegotiation",
	"channel_binding", "require_auth", "min_protocol_version", "max_protocol_version", "krbsrvname", "krbspn",
	"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime", "pool_max_conn_lifetime_jitter",
	"pool_max_conn_idle_time", "pool_health_check_period", "pool_ping_timeout",
	"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity",
	"application_name", "options", "role", "search_path",
}

// ignored lists settings of the server, and of other clients, for the statements of the
// application. The store's statements need their own settings: the statements write, are
// as durable as the server allows, and are bounded by their callers.
var ignored = []string{
	"client_encoding", "datestyle", "DateStyle", "intervalstyle", "IntervalStyle", "timezone", "TimeZone", "extra_float_digits",
	"statement_timeout", "lock_timeout", "transaction_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout",
	"default_transaction_isolation", "default_transaction_read_only", "default_transaction_deferrable",
	"synchronous_commit", "work_mem", "jit", "fallback_application_name",
	"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "sslcompression",
	"pgbouncer", // Prisma's, in the URLs of Supabase. The store recognizes a pooler by itself.
}

// forPgx reads the parameters for pgx. The password is separate, because the error of pgx
// about an invalid URL shows the URL.
func forPgx(p *driver.Params) (params url.Values, password string) {
	params = url.Values{}
	for _, name := range passed {
		if value := p.Text(name, ""); value != "" {
			params.Set(name, value)
		}
	}
	if p.OneOf("ssl", "", "true") != "" && !params.Has("sslmode") {
		params.Set("sslmode", "require")
	}
	p.OneOf("gssencmode", "prefer", "disable") // pgx has no GSS encryption
	p.Ignore(ignored...)
	return params, p.Text("password", "")
}

// configure returns the configuration for the hosts of a URL; the hosts may be among the
// parameters.
func configure(u *url.URL, params url.Values, password string) (*pgxpool.Config, error) {
	at, params := *u, maps.Clone(params)
	if u.User != nil {
		at.User = url.User(u.User.Username())
		own, _ := u.User.Password()
		password = cmp.Or(own, password)
	}
	otherwise := func(name, variable, value string) {
		if !params.Has(name) && os.Getenv(variable) == "" {
			params.Set(name, value)
		}
	}
	names := strings.Split(cmp.Or(params.Get("host"), u.Host, os.Getenv("PGHOST")), ",")
	if len(names) > 1 {
		otherwise("target_session_attrs", "PGTARGETSESSIONATTRS", "read-write")
	}
	if slices.ContainsFunc(names, hosturl.Remote) {
		otherwise("sslmode", "PGSSLMODE", "verify-full")
	}
	otherwise("connect_timeout", "PGCONNECT_TIMEOUT", "5")
	otherwise("application_name", "PGAPPNAME", "holdfast")
	at.RawQuery = strings.ReplaceAll(params.Encode(), "+", "%20") // in libpq and pgx a + is a +
	config, err := pgxpool.ParseConfig(at.String())
	switch {
	case err != nil && params.Has("sslpassword"):
		return nil, errors.New("pgx cannot read the parameters; what it says may show the sslpassword")
	case err != nil:
		return nil, withoutURL(err)
	}
	if password != "" {
		config.ConnConfig.Password = password
	}
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // otherwise the database's encoding
	return config, nil
}

// withoutURL returns the error about a URL without the URL.
func withoutURL(err error) error {
	said := err.Error()
	at := strings.LastIndex(said, "`: ")
	if at < 0 {
		return errors.New("pgx cannot read the parameters")
	}
	return errors.New(said[at+len("`: "):])
}

// plain warns of hosts to which a password may travel unencrypted.
func plain(config *pgconn.Config) []string {
	if config.Password == "" {
		return nil
	}
	var hosts []string
	if config.TLSConfig == nil {
		hosts = append(hosts, config.Host)
	}
	for _, f := range config.Fallbacks {
		if f.TLSConfig == nil {
			hosts = append(hosts, f.Host)
		}
	}
	return hosturl.Plain(hosts, "use sslmode=verify-full")
}
