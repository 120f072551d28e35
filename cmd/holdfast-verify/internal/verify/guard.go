package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/register"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A guard is the data that the locks of a store guard in a run: rows for a database, keys
// for Redis. The data is in a separate server that no fault harms, because accepted writes
// must be there in the end.
type guard struct {
	kind  register.Kind
	start func(tb servers.TB) (url string) // as fast as possible, since the server never crashes
}

// guards maps URL schemes to the guards of started stores. The locks of the remaining
// stores guard files.
var guards = map[string]guard{
	"redis":   {register.Redis, startRedisGuard},
	"redlock": {register.Redis, startRedisGuard},
	"postgres": {register.Postgres, func(tb servers.TB) string {
		return servers.StartPostgres(tb, "max_connections = 500", "fsync = off").URL()
	}},
	"mysql": {register.MySQL, func(tb servers.TB) string {
		return servers.StartMariaDB(tb, "max_connections = 500", "innodb_flush_log_at_trx_commit = 0").URL()
	}},
}

func startRedisGuard(tb servers.TB) string {
	return servers.StartRedis(tb, "maxmemory-policy noeviction").URL()
}

// guard creates the registers.
func (s *scene) guard(ctx context.Context) error {
	if err := s.host.Try(func() { s.target.registers = s.target.guarded(s.host, s.dir) }); err != nil {
		return fmt.Errorf("start what the locks of %s guard: %w", s.target.name, err)
	}
	registers, err := s.target.registers.Open(0)
	if err != nil {
		return err
	}
	var names []register.Name
	for _, key := range (plan.Workload{Keys: s.Keys}).Guarded() {
		names = append(names, register.Name{Key: key}, register.Name{Key: key, Fenced: true})
	}
	return errors.Join(registers.Create(ctx, names), registers.Close())
}

// guarded returns the place of the registers.
func (t *target) guarded(tb servers.TB, folder string) register.Place {
	if t.url.Scheme == "sqlite" {
		return register.Place{Kind: register.SQLite, At: filepath.Join(folder, "registers.db")}
	}
	if g, ok := guards[t.url.Scheme]; ok && t.started {
		return register.Place{Kind: g.kind, At: g.start(tb)}
	}
	return register.Place{Kind: register.Files, At: folder}
}
