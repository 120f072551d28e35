package redislock

import (
	"fmt"
	"strings"
)

// buckets is into how many parts the keys of a Cluster are split. All that a
// script touches must share a slot, and each slot in use keeps one number for
// good, the highest token that it has given: so there are slots for buckets of
// keys, not one for each key.
const buckets = 1024

// names are the Redis keys of one prefix.
type names struct {
	prefix  string
	cluster bool
}

// checkPrefix fails for a prefix that would decide about the slot of a key.
func checkPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") {
		return fmt.Errorf("prefix %q has a brace: Redis would take it for a hash tag", prefix)
	}
	return nil
}

// bucket is the hash tag of a key.
func bucket(key string) string {
	const digits = "0123456789abcdef"
	h := uint32(2166136261) // FNV-1a, written out because it is on every path
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	h = (h ^ h>>16) % buckets
	return string([]byte{'{', digits[h>>8], digits[h>>4&15], digits[h&15], '}'})
}

// The Redis keys of a claim. All have the bucket of its key for a hash tag;
// what braces the key itself has do not count then.

func (n names) held(key string) string { return n.prefix + bucket(key) + ":held:" + key }

// pair returns held and places.
func (n names) pair(key string) (held, places string) {
	base := n.prefix + bucket(key)
	text := base + ":held:" + key + base + ":places:" + key
	length := len(base) + len(":held:") + len(key)
	return text[:length], text[length:]
}

func (n names) tomb(key, id string) string { return n.prefix + bucket(key) + ":tomb:" + id }

// floor is one for all keys, unless they are in different slots.
func (n names) floor(key string) string {
	if n.cluster {
		return n.prefix + bucket(key) + ":floor"
	}
	return n.prefix + "floor"
}

// all returns held, line, places, tomb and floor, as most scripts take them.
func (n names) all(key, id string) []string {
	base := n.prefix + bucket(key)
	// One text for all four, because it is on every path.
	text := base + ":held:" + key + base + ":line:" + key + base + ":places:" + key + base + ":tomb:" + id
	names := make([]string, 0, 5)
	for _, length := range []int{len(":held:") + len(key), len(":line:") + len(key), len(":places:") + len(key), len(":tomb:") + len(id)} {
		length += len(base)
		names = append(names, text[:length])
		text = text[length:]
	}
	return append(names, n.floor(key))
}

// patterns match the Redis keys of all keys with live claims that begin with
// prefix.
func (n names) patterns(prefix string) []string {
	tag := strings.Repeat("[0-9a-f]", 3)
	var out []string
	for _, kind := range []string{":held:", ":places:"} {
		out = append(out, escape(n.prefix)+"{"+tag+"}"+kind+escape(prefix)+"*")
	}
	return out
}

// key is the key that a Redis key which matches a pattern is about.
func (n names) key(name string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(name, n.prefix)
	if !ok || len(rest) < len("{000}:") {
		return "", false
	}
	_, key, ok = strings.Cut(rest[len("{000}:"):], ":")
	return key, ok
}

// escape keeps what means something to a pattern of Redis from doing so.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
