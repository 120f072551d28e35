package redislock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	_ "github.com/holdfast-go/holdfast/ext/redislock"
)

// opening is a harness of a store that a URL names.
func opening(url string) drivertest.Harness {
	return drivertest.Harness{
		MinTTL: time.Millisecond,
		Open: func(t testing.TB) driver.Store {
			return servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
		},
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, opening(servers.StartRedis(t).URL()))
}

func BenchmarkStore(b *testing.B) {
	drivertest.Bench(b, opening(servers.StartRedis(b).URL()))
}

func TestContractBehindSentinels(t *testing.T) {
	t.Parallel()
	url := "redis://" + strings.Join(servers.StartSentinel(t).Calm().Addrs(), ",") + "?master=" + servers.MasterName
	t.Run("plain", func(t *testing.T) { drivertest.Run(t, opening(url)) })
	t.Run("wait=1", func(t *testing.T) { drivertest.Run(t, opening(url+"&wait=1")) })
}

func TestContractInACluster(t *testing.T) {
	t.Parallel()
	url := "redis://" + strings.Join(servers.StartCluster(t).Addrs(), ",")
	t.Run("plain", func(t *testing.T) { drivertest.Run(t, opening(url)) })
	t.Run("wait=1", func(t *testing.T) { drivertest.Run(t, opening(url+"?wait=1")) })
}
