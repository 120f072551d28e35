package verify

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// leftInRedis finds connections, and keys with no end, or none soon. Tokens are
// counted on for ever. What replicas have is what their primaries have, and Sentinels
// have no keys; they all keep in touch with each other.
func leftInRedis(all ...*servers.Redis) func(time.Duration) []string {
	return func(bound time.Duration) (left []string) {
		for _, r := range all {
			if r.Info("role") == "master" {
				left = append(left, keysLeft(r, bound)...)
			}
			for client := range strings.Lines(fmt.Sprint(r.Must("CLIENT", "LIST", "TYPE", "normal"), r.Must("CLIENT", "LIST", "TYPE", "pubsub"))) {
				if !strings.Contains(client, " cmd=client|list ") && !strings.Contains(client, " name=sentinel-") { // the first is who asks
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

// leftInMemcached finds connections, and items with no end, or none soon. The clock
// stays as long as the server, and so does what has filled its memory.
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

// leftInEtcd finds connections, keys but for ids that are not to come back, which end
// with a lease, and leases that do not end soon.
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

// leftInZooKeeper finds connections, watches and nodes that the servers do not have by
// themselves. Those started here remove an empty container within a second, unless there
// never was anything in it. The sessions themselves may stay for some half a minute when
// a process is killed: that by which it looks asks for so much.
func leftInZooKeeper(all ...*servers.ZooKeeper) func(time.Duration) []string {
	usual := map[string]int{"znode_count": 5, "ephemerals_count": 0, "watch_count": 0, "num_alive_connections": 1} // by which it asks
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
