package verify

import (
	"cmp"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/hosturl"
)

// Reasons why no proxy can stand before a store.
const (
	offline   = "workers do not reach it over TCP"
	encrypted = "it is reached by TLS, whose certificates name a host that is not the proxy"
	elsewhere = "its servers tell workers other addresses, at which there is no proxy"
	aside     = "its address is not where a URL has its host"
	hashed    = "the addresses of its servers decide which of them has a key"
)

// obstacle returns the reason why no proxy can stand before the store of a URL; "" if a
// proxy can. The proxy must be on the only way to the store, and connections through the
// proxy must be as safe as direct connections: a remote host has to prove its name to some
// stores, and a proxy on this machine has not.
func obstacle(u *url.URL) string {
	params, several := u.Query(), strings.Contains(u.Host, ",")
	tls, _ := strconv.ParseBool(params.Get("tls"))
	scheme := cmp.Or(params.Get("scheme"), "redis")
	switch u.Scheme {
	case "etcd", "nats":
		return ""
	case "postgres", "postgresql":
		return postgresObstacle(u, params)
	case "mysql", "mariadb":
		return mysqlObstacle(u, params)
	case "sqlserver":
		return sqlServerObstacle(u, params)
	case "redis":
		return when(several || hasAny(params, "addr", "master", "master_set", "master_name"), elsewhere)
	case "memcached":
		return when(several, hashed)
	case "zk":
		return when(tls, encrypted)
	case "s3", "gs", "dynamodb", "azblob":
		return when(!strings.HasPrefix(params.Get("endpoint"), "http://"), encrypted)
	case "redlock":
		return cmp.Or(when(u.Host == "", aside), when(scheme != "redis", encrypted))
	case "rediss", "etcds", "natss":
		return encrypted
	}
	return offline
}

// hasAny reports whether a parameter with a name in names is given.
func hasAny(params url.Values, names ...string) bool { return slices.ContainsFunc(names, params.Has) }

// when returns a reason if the reason applies.
func when(applies bool, reason string) string {
	if applies {
		return reason
	}
	return ""
}

// postgresObstacle follows pglock: TLS is required for remote machines unless a setting
// says otherwise.
func postgresObstacle(u *url.URL, params url.Values) string {
	if u.Host == "" || hasAny(params, "host", "port", "service") {
		return aside
	}
	if !params.Has("sslmode") && params.Has("ssl") {
		return encrypted
	}
	switch cmp.Or(params.Get("sslmode"), os.Getenv("PGSSLMODE")) {
	case "disable", "allow", "prefer": // without a check of the certificate
		return ""
	case "":
		return when(!local(u.Host) || params.Has("listen") && !local(params.Get("listen")), encrypted)
	}
	return encrypted
}

// mysqlObstacle follows mysqllock in the same way.
func mysqlObstacle(u *url.URL, params url.Values) string {
	switch mode := strings.ToLower(cmp.Or(params.Get("tls"), params.Get("ssl-mode"))); {
	case u.Host == "" || params.Has("socket"):
		return aside
	case mode == "false" || mode == "0" || mode == "disabled" || mode == "preferred": // without a check of the certificate
		return ""
	case mode != "" || hasAny(params, "ca", "cert", "key", "ssl-ca", "ssl-cert", "ssl-key"):
		return encrypted
	}
	return when(!local(u.Host), encrypted)
}

// sqlServerObstacle follows mssqllock, whose parameters have upper or lower case.
func sqlServerObstacle(u *url.URL, params url.Values) string {
	mode := ""
	for name, values := range params {
		switch strings.ToLower(name) {
		case "encrypt":
			mode = strings.ToLower(values[0])
		case "failoverpartner":
			return elsewhere
		}
	}
	switch {
	case strings.Trim(u.Path, "/") != "": // an instance, whose port the server tells
		return elsewhere
	case mode == "":
		return when(!local(u.Host), encrypted)
	}
	plain := []string{"disable", "optional", "no", "0", "f", "false"} // without a check of the certificate
	return when(!slices.Contains(plain, mode), encrypted)
}

// local reports whether every host is this machine.
func local(hosts string) bool {
	return !slices.ContainsFunc(strings.Split(hosts, ","), hosturl.Remote)
}
