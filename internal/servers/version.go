package servers

import (
	"errors"
	"strings"
)

// Version returns the name and the version of the server.
func (r *Redis) Version() string {
	r.tb.Helper()
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
	return "MariaDB " + strings.TrimSpace(m.Must("SELECT version()"))
}

// Version returns the name and the version of the server.
func (m *Memcached) Version() string {
	m.tb.Helper()
	var version string
	mustAwait(m.tb, "the version of "+m.Addr(), func() (err error) {
		version, err = m.stat("stats", "version", glance)
		return err
	})
	return "Memcached " + version
}

// Version returns the name and the version of the server.
func (e *Etcd) Version() string {
	e.tb.Helper()
	var status struct{ Version string }
	e.must("/v3/maintenance/status", "{}", &status)
	return "etcd " + status.Version
}

// Version returns the name and the version of the server.
func (z *ZooKeeper) Version() (version string) {
	z.tb.Helper()
	mustAwait(z.tb, "the version of "+z.Addr(), func() error {
		said, err := z.Do("srvr")
		_, version, _ = strings.Cut(said, "Zookeeper version: ")
		version, _, _ = strings.Cut(version, "-")
		if err == nil && version == "" {
			err = errors.New("it does not tell it")
		}
		return err
	})
	return "ZooKeeper " + version
}
