package redislock

import (
	"fmt"
	"strings"
)

// buckets is the number of parts into which the keys of a Cluster are split. The Redis
// keys of a script must share a slot, and every slot in use keeps a number for good, the
// highest token given. So a slot belongs to a bucket of keys, not to a single key.
const buckets = 1024

// names are the Redis keys of one prefix.
type names struct {
	prefix  string
	cluster bool
}

// checkPrefix fails for a prefix that would determine the slot of a key.
func checkPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") {
		return fmt.Errorf("prefix %q has a brace: Redis would take it for a hash tag", prefix)
	}
	return nil
}

// bucket is the hash tag of a key.
func bucket(key string) string {
	const digits = "0123456789abcdef"
	h := uint32(2166136261) // FNV-1a, written out for speed: every call needs the bucket
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	h = (h ^ h>>16) % buckets
	return string([]byte{'{', digits[h>>8], digits[h>>4&15], digits[h&15], '}'})
}

// The methods below name the Redis keys of a claim. The hash tag is always the bucket of
// the claim's key, so braces in the key itself do not count.

func (n names) held(key string) string { return n.prefix + bucket(key) + ":held:" + key }

// pair returns held and places.
func (n names) pair(key string) (held, places string) {
	base := n.prefix + bucket(key)
	text := base + ":held:" + key + base + ":places:" + key
	length := len(base) + len(":held:") + len(key)
	return text[:length], text[length:]
}

func (n names) tomb(key, id string) string { return n.prefix + bucket(key) + ":tomb:" + id }

// floor is the same for all keys, except in a Cluster, where slots differ.
func (n names) floor(key string) string {
	if n.cluster {
		return n.prefix + bucket(key) + ":floor"
	}
	return n.prefix + "floor"
}

// all returns held, line, places, tomb and floor, the keys of most scripts.
func (n names) all(key, id string) []string {
	base := n.prefix + bucket(key)
	// One allocation for all four keys, because most calls need all four.
	text := base + ":held:" + key + base + ":line:" + key + base + ":places:" + key + base + ":tomb:" + id
	names := make([]string, 0, 5)
	for _, length := range []int{len(":held:") + len(key), len(":line:") + len(key), len(":places:") + len(key), len(":tomb:") + len(id)} {
		length += len(base)
		names = append(names, text[:length])
		text = text[length:]
	}
	return append(names, n.floor(key))
}

// patterns match the Redis keys of all keys with live claims that begin with prefix.
func (n names) patterns(prefix string) []string {
	tag := strings.Repeat("[0-9a-f]", 3)
	var out []string
	for _, kind := range []string{":held:", ":places:"} {
		out = append(out, escape(n.prefix)+"{"+tag+"}"+kind+escape(prefix)+"*")
	}
	return out
}

// key returns the claim's key of a Redis key that matches a pattern.
func (n names) key(name string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(name, n.prefix)
	if !ok || len(rest) < len("{000}:") {
		return "", false
	}
	_, key, ok = strings.Cut(rest[len("{000}:"):], ":")
	return key, ok
}

// escape quotes the characters that are special in a pattern of Redis.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
