package verify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// keep is how long a store may keep a little of what was asked of it, whatever the
// TTL: Redis has a line that nobody asks about any more for so long.
const keep = 30 * time.Second

// count looks into the servers, where no store hides what it does not count. It
// waits a while for what is still going.
func (s *scene) count(ctx context.Context) {
	look := s.target.engine.left
	if look == nil || len(s.failures) > 0 { // which may be why something is there
		return
	}
	s.progress("%s: looking into the servers", s.target.name)
	ctx, cancel := context.WithTimeout(ctx, lapse(s.TTL)+slack)
	defer cancel()
	for {
		err := s.host.Try(func() { s.litter = look(keep + lapse(s.TTL)) })
		s.fail("look into the servers", err)
		if err != nil || len(s.litter) == 0 || !sleep(ctx, 100*time.Millisecond) {
			return
		}
	}
}

// leftInRedis finds connections, and keys with no end, or none soon. Tokens are
// counted on for ever.
func leftInRedis(all ...*servers.Redis) func(time.Duration) []string {
	return func(bound time.Duration) (left []string) {
		for _, r := range all {
			keys, _ := r.Must("KEYS", "holdfast:*").([]any)
			for _, key := range keys {
				name := fmt.Sprint(key)
				end, _ := r.Must("PTTL", name).(int64)
				if !strings.HasSuffix(name, "floor") && (end == -1 || end > bound.Milliseconds()) {
					left = append(left, fmt.Sprintf("the server still has the key %s, for %d ms", name, end))
				}
			}
			for client := range strings.Lines(fmt.Sprint(r.Must("CLIENT", "LIST"))) {
				if !strings.Contains(client, " cmd=client") { // that is who asks
					left = append(left, "the server still has the connection "+strings.TrimSpace(client))
				}
			}
		}
		return left
	}
}

// leftInPostgres finds connections.
func leftInPostgres(p *servers.Postgres) func(time.Duration) []string {
	return func(time.Duration) []string {
		return connections(p.Must(`SELECT pid, state, query FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`))
	}
}

// leftInMariaDB finds connections.
func leftInMariaDB(m *servers.MariaDB) func(time.Duration) []string {
	return func(time.Duration) []string {
		return connections(m.Must(`SELECT id, state, info FROM information_schema.processlist
WHERE user = substring_index(current_user(), '@', 1) AND command <> 'Daemon' AND id <> connection_id()`))
	}
}

// connections are what a database has told, one a line.
func connections(told string) (left []string) {
	for line := range strings.Lines(told) {
		if line = strings.TrimSpace(line); line != "" {
			left = append(left, "the server still has the connection "+line)
		}
	}
	return left
}

// leftInZooKeeper finds nodes of sessions, and watches. The sessions themselves may
// stay for some half a minute when a process is killed: that by which it looks asks for
// so much.
func leftInZooKeeper(z *servers.ZooKeeper) func(time.Duration) []string {
	return func(time.Duration) (left []string) {
		for _, what := range []string{"ephemerals_count", "watch_count"} {
			if n := z.Count(what); n > 0 {
				left = append(left, fmt.Sprintf("the server still has a %s of %d", what, n))
			}
		}
		return left
	}
}
