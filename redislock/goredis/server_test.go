package goredis

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/servers"
)

var shared *servers.Redis

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartRedis(tb) }))
}

// Empty returns the server of all tests without data, scripts, refusals and clients. A test
// that calls Empty must not run in parallel.
func Empty() *servers.Redis {
	shared.Must("FLUSHALL", "SYNC")
	shared.FlushScripts()
	shared.Must("ACL", "LOG", "RESET")
	shared.KillClients()
	return shared
}
