package verify

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
)

// leftInRedis finds connections, and keys that do not expire within bound. Token counters
// stay for ever. Replicas have the keys of the primaries, and Sentinels have no keys.
// Connections between servers are ignored.
func leftInRedis(all ...*servers.Redis) func(time.Duration) []string {
	return func(bound time.Duration) (left []string) {
		for _, r := range all {
			if r.Info("role") == "master" {
				left = append(left, keysLeft(r, bound)...)
			}
			for client := range strings.Lines(fmt.Sprint(r.Must("CLIENT", "LIST", "TYPE", "normal"), r.Must("CLIENT", "LIST", "TYPE", "pubsub"))) {
				if !servers.ListsClients(client) && !strings.Contains(client, " name=sentinel-") { // the first is who asks
					left = append(left, still("connection", client)...)
				}
			}
		}
		return left
	}
}

func keysLeft(r *servers.Redis, bound time.Duration) (left []string) {
	keys, _ := r.Must("KEYS", "*").([]any)
	for _, key := range keys {
		name := fmt.Sprint(key)
		end, _ := r.Must("PTTL", name).(int64)
		if !strings.HasSuffix(name, "floor") && (end == -1 || end > bound.Milliseconds()) {
			left = append(left, fmt.Sprintf("the server still has the key %s, for %d ms", name, end))
		}
	}
	return left
}

// leftInMemcached finds connections, and items that do not expire within bound. The clock
// stays as long as the server; the items that have filled the memory stay too.
func leftInMemcached(m *servers.Memcached) func(time.Duration) []string {
	return func(bound time.Duration) []string {
		left := still("connection", strings.Join(m.Connections(), "\n"))
		for name, end := range m.Items() {
			if !strings.HasSuffix(name, "@clock") && !strings.HasPrefix(name, "filler") && (end < 0 || end > bound) {
				left = append(left, fmt.Sprintf("the server still has the item %s, for %v", name, end))
			}
		}
		return left
	}
}

// leftInEtcd finds connections, keys, and leases that do not end within bound. Ids that
// must not come back are left out if a lease ends them.
func leftInEtcd(all ...*servers.Etcd) func(time.Duration) []string {
	return func(bound time.Duration) (left []string) {
		for _, k := range all[0].Keys() {
			if k.Lease == "" || !bytes.Contains(k.Name, []byte("ended/")) {
				left = append(left, fmt.Sprintf("the server still has the key %s", k.Name))
			}
		}
		for id, seconds := range all[0].Leases() {
			if end := time.Duration(seconds) * time.Second; end > bound {
				left = append(left, fmt.Sprintf("the server still has the lease %s, for %v", id, end))
			}
		}
		for _, e := range all {
			if n := e.Clients.Open(); n > 0 {
				left = append(left, fmt.Sprintf("the server %s still has %d connections", e.Addr(), n))
			}
		}
		return left
	}
}

// leftInZooKeeper finds connections, watches, and nodes beyond the servers' own. The
// servers started here remove an empty container within a second, unless the container
// never had a child. Sessions may stay for about half a minute after a process was killed:
// the session for calls without a claim asks for that long.
func leftInZooKeeper(all ...*servers.ZooKeeper) func(time.Duration) []string {
	usual := map[string]int{"znode_count": 5, "ephemerals_count": 0, "watch_count": 0, "num_alive_connections": 1} // the connection that asks
	return func(time.Duration) (left []string) {
		for _, z := range all {
			for what, few := range usual {
				if n := z.Count(what); n > few {
					left = append(left, fmt.Sprintf("the server %s still has a %s of %d, in place of %d", z.Addr(), what, n, few))
				}
			}
		}
		return left
	}
}
