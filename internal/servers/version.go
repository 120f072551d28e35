package servers

import (
	"errors"
	"strings"
)

// Version returns the name and the version of the server.
func (r *Redis) Version() string {
	r.tb.Helper()
	if version := r.Info("valkey_version"); version != "" {
		return "Valkey " + version
	}
	return "Redis " + r.Info("redis_version")
}

// Version returns the name and the version of the server.
func (p *Postgres) Version() string {
	p.tb.Helper()
	version, _, _ := strings.Cut(p.Must("SHOW server_version"), " ") // the name of the package follows
	return "PostgreSQL " + version
}

// Version returns the name and the version of the server.
func (m *MariaDB) Version() string {
	m.tb.Helper()
	version := strings.TrimSpace(m.Must("SELECT version()"))
	if strings.Contains(version, "MariaDB") {
		return "MariaDB " + version
	}
	return "MySQL " + version
}

// Version returns the name and the version of the server.
func (m *Memcached) Version() string {
	m.tb.Helper()
	return "Memcached " + awaited(m.tb, "the version of "+m.Addr(), func() (string, error) {
		return m.stat("stats", "version", glance)
	})
}

// Version returns the name and the version of the server.
func (e *Etcd) Version() string {
	e.tb.Helper()
	var status struct{ Version string }
	e.must("/v3/maintenance/status", "{}", &status)
	return "etcd " + status.Version
}

// Version returns the name and the version of the server.
func (z *ZooKeeper) Version() string {
	z.tb.Helper()
	return "ZooKeeper " + awaited(z.tb, "the version of "+z.Addr(), func() (version string, err error) {
		said, err := z.Do("srvr")
		_, version, _ = strings.Cut(said, "Zookeeper version: ")
		version, _, _ = strings.Cut(version, "-")
		if err == nil && version == "" {
			err = errors.New("it does not tell it")
		}
		return version, err
	})
}
