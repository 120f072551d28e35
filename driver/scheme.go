package driver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// packages are the packages of Holdfast's own stores, by the schemes that they register.
var packages = map[string]string{
	"azblob":   "azurelock",
	"dynamodb": "dynamodblock",
	"etcd":     "etcdlock", "etcds": "etcdlock",
	"file":    "filelock",
	"gs":      "gcslock",
	"mariadb": "mysqllock", "mysql": "mysqllock",
	"mem":       "memlock",
	"memcached": "memcachelock",
	"nats":      "natslock", "natss": "natslock",
	"postgres": "pglock", "postgresql": "pglock",
	"redis": "redislock", "rediss": "redislock", "unix": "redislock",
	"redlock":   "redlock",
	"s3":        "s3lock",
	"sqlite":    "sqlitelock",
	"sqlserver": "mssqllock",
	"zk":        "zklock",
}

// others maps schemes of foreign tools to the scheme of the store for the same engine.
var others = map[string]string{
	"http": "etcd", "https": "etcds",
	"gcs":      "gs",
	"memcache": "memcached",
	"mssql":    "sqlserver",
	"mysql2":   "mysql", "mysqlx": "mysql",
	"pg": "postgres", "pgsql": "postgres", "pgx": "postgres", "postgre": "postgres",
	"sqlite3": "sqlite",
	"tls":     "natss",
	"valkey":  "redis", "valkeys": "rediss",
	"zookeeper": "zk",
}

// unknownScheme says why there is no store for a scheme, and what would be right: an import
// of the package, or a different scheme.
func unknownScheme(scheme string) error {
	registered := strings.Join(Schemes(), ", ")
	if registered == "" {
		registered = "none"
	}
	if scheme == "" {
		return fmt.Errorf("%w: it has no scheme, such as file:///var/lib/locks has (known: %s)", ErrURL, registered)
	}
	if path := packages[scheme]; path != "" {
		return fmt.Errorf("%w: the store for scheme %q is not imported: add import _ %q (imported: %s)",
			ErrURL, scheme, "github.com/holdfast-go/holdfast/"+path, registered)
	}
	hint := ""
	base, _, _ := strings.Cut(scheme, "+") // postgresql+psycopg
	if right := others[base]; right != "" {
		base = right
	}
	if packages[base] != "" {
		hint = fmt.Sprintf("; did you mean %s://?", base)
	}
	missing := maps.Clone(packages)
	for _, known := range Schemes() {
		delete(missing, known)
	}
	if len(missing) == 0 {
		return fmt.Errorf("%w: no store for scheme %q%s (known: %s)", ErrURL, scheme, hint, registered)
	}
	return fmt.Errorf("%w: no store for scheme %q%s (imported: %s; not imported: %s)",
		ErrURL, scheme, hint, registered, strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
}
