package verify

import (
	"cmp"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Why no proxy can stand before a store.
const (
	offline   = "workers do not reach it over TCP"
	encrypted = "it is reached by TLS, whose certificates name a host that is not the proxy"
	elsewhere = "its servers tell workers other addresses, at which there is no proxy"
	aside     = "its address is not where a URL has its host"
	hashed    = "the addresses of its servers decide which of them has a key"
)

// obstacle says why no proxy can stand before the store of a URL, "" if one can. A
// proxy must be on the only way to the store, and connections through it as safe
// as those without: a host that is another machine has to prove its name to some
// stores, and a proxy on this machine has not.
func obstacle(u *url.URL) string {
	params, several := u.Query(), strings.Contains(u.Host, ",")
	tls, _ := strconv.ParseBool(params.Get("tls"))
	scheme := cmp.Or(params.Get("scheme"), "redis")
	switch u.Scheme {
	case "etcd":
		return ""
	case "postgres", "postgresql":
		return postgresObstacle(u, params)
	case "mysql", "mariadb":
		return mysqlObstacle(u, params)
	case "redis":
		return when(several || params.Has("master"), elsewhere)
	case "memcached":
		return when(several, hashed)
	case "zk":
		return when(tls, encrypted)
	case "redlock":
		return cmp.Or(when(u.Host == "", aside), when(scheme != "redis", encrypted))
	case "rediss", "etcds":
		return encrypted
	}
	return offline
}

// when returns a reason if it applies.
func when(applies bool, reason string) string {
	if applies {
		return reason
	}
	return ""
}

// postgresObstacle follows pglock: TLS is a must on other machines unless something
// says otherwise.
func postgresObstacle(u *url.URL, params url.Values) string {
	if u.Host == "" || params.Has("host") || params.Has("port") {
		return aside
	}
	switch cmp.Or(params.Get("sslmode"), os.Getenv("PGSSLMODE")) {
	case "disable", "allow", "prefer": // which ask for no certificate
		return ""
	case "":
		return when(!local(u.Host) || params.Has("listen") && !local(params.Get("listen")), encrypted)
	}
	return encrypted
}

// mysqlObstacle follows mysqllock in the same way.
func mysqlObstacle(u *url.URL, params url.Values) string {
	files := params.Get("ca") + params.Get("cert") + params.Get("key")
	switch mode := params.Get("tls"); {
	case u.Host == "" || params.Has("socket"):
		return aside
	case mode == "false" || mode == "preferred": // which ask for no certificate
		return ""
	case mode != "" || files != "":
		return encrypted
	}
	return when(!local(u.Host), encrypted)
}

// local reports whether all of these hosts are this machine.
func local(hosts string) bool {
	return !slices.ContainsFunc(strings.Split(hosts, ","), func(host string) bool {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = strings.Trim(host, "[]")
		}
		ip := net.ParseIP(name)
		return name != "localhost" && (ip == nil || !ip.IsLoopback())
	})
}
