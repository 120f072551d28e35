// Package stores tests upgrades of read locks, and schedlock, on real stores.
package stores

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/holdfast-go/holdfast/azurelock"
	"github.com/holdfast-go/holdfast/driver"
	_ "github.com/holdfast-go/holdfast/dynamodblock"
	_ "github.com/holdfast-go/holdfast/etcdlock"
	_ "github.com/holdfast-go/holdfast/filelock"
	_ "github.com/holdfast-go/holdfast/gcslock"
	"github.com/holdfast-go/holdfast/internal/servers"
	_ "github.com/holdfast-go/holdfast/memcachelock"
	_ "github.com/holdfast-go/holdfast/mssqllock"
	_ "github.com/holdfast-go/holdfast/mysqllock"
	_ "github.com/holdfast-go/holdfast/natslock"
	_ "github.com/holdfast-go/holdfast/pglock"
	_ "github.com/holdfast-go/holdfast/redislock"
	_ "github.com/holdfast-go/holdfast/redlock"
	_ "github.com/holdfast-go/holdfast/s3lock"
	_ "github.com/holdfast-go/holdfast/sqlitelock"
	_ "github.com/holdfast-go/holdfast/zklock"
)

// starts start the servers of the stores, and return the URLs.
var starts = map[string]func(t *testing.T) string{
	"file":       func(t *testing.T) string { return "file://" + filepath.Join(t.TempDir(), "locks") },
	"SQLite":     func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "locks.db") },
	"Redis":      func(t *testing.T) string { return servers.StartRedis(t).URL() },
	"etcd":       func(t *testing.T) string { return servers.StartEtcd(t).URL() },
	"NATS":       func(t *testing.T) string { return servers.StartNATS(t).URL() },
	"DynamoDB":   func(t *testing.T) string { return servers.StartDynamoDB(t).URL() },
	"S3":         func(t *testing.T) string { return servers.StartS3(t).URL() },
	"Azure":      func(t *testing.T) string { return servers.StartAzurite(t).URL() },
	"GCS":        func(t *testing.T) string { return servers.StartGCS(t).URL() },
	"ZooKeeper":  func(t *testing.T) string { return servers.StartZooKeeper(t).URL() },
	"Memcached":  func(t *testing.T) string { return servers.StartMemcached(t).URL() },
	"Postgres":   func(t *testing.T) string { return servers.AnyPostgres(t, "fsync = off").URL() },
	"sessions":   func(t *testing.T) string { return servers.AnyPostgres(t, "fsync = off").URL() + "&mode=session" },
	"MariaDB":    func(t *testing.T) string { return servers.AnyMariaDB(t, "innodb_flush_method = nosync").URL() },
	"SQL Server": func(t *testing.T) string { return servers.AnySQLServer(t) },
	"Redlock": func(t *testing.T) string {
		var nodes []string
		for _, r := range servers.StartMasters(t, 3) {
			nodes = append(nodes, r.Addr())
		}
		return "redlock://" + strings.Join(nodes, ",") + "?quarantine=0"
	},
}

// start starts a store, makes what the store needs, and returns the URL.
func start(t *testing.T, name string) (url string) {
	t.Helper()
	url = starts[name](t)
	store := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
	defer store.Close()
	if c, ok := store.(driver.Creator); ok {
		if err := c.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return url
}
