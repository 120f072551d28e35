package memcachelock

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// DefaultPrefix stands before the names of all items of a Store unless its
// Options say otherwise.
const DefaultPrefix = "holdfast:"

// Names of items have up to 250 bytes of printable ASCII. If a key does not fit into such
// a name beside a prefix, the name has a hash of the key instead. The record always holds
// the key.
const (
	plainMark  = '='
	hashMark   = '#'
	longestKey = 180 // 246 together with the longest prefix and the rest of a mark
	longestOwn = 60  // bytes of a prefix
)

// item is the name of a key's item.
func (o *Options) item(key string) string {
	if len(key) <= longestKey && printable(key) {
		return o.Prefix + string(plainMark) + key
	}
	sum := sha256.Sum256([]byte(key))
	return o.Prefix + string(hashMark) + base64.RawURLEncoding.EncodeToString(sum[:])
}

// clock is the name of a server's clock. See server.handshake.
func (o *Options) clock() string { return o.Prefix + "@clock" }

// mark is the name of the item that stands for a short time while a waiter wants the key of
// this item.
func (o *Options) mark(item string) string { return o.Prefix + "@wait" + item[len(o.Prefix):] }

// next is the name of the item of the waiter that is next for the key of this item.
func (o *Options) next(item string) string { return o.Prefix + "@next" + item[len(o.Prefix):] }

// authItem is the name under which a server without passwords would store our password.
// A server with passwords ignores the name.
func (o *Options) authItem() string { return o.Prefix + "@user" }

// canary is the name of an item that shows whether the server keeps the conditions of writes.
func (o *Options) canary(random string) string { return o.Prefix + "@canary" + random }

// beginsWith reports whether the key of an item may begin with prefix.
func (o *Options) beginsWith(item, prefix string) bool {
	rest, ours := strings.CutPrefix(item, o.Prefix)
	switch {
	case !ours || rest == "":
		return false
	case rest[0] == plainMark:
		return strings.HasPrefix(rest[1:], prefix)
	}
	return rest[0] == hashMark
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func checkPrefix(prefix string) error {
	if len(prefix) > longestOwn || !printable(prefix) {
		return fmt.Errorf("%w: the prefix %.80q (want up to %d bytes of printable ASCII)", driver.ErrInvalid, prefix, longestOwn)
	}
	return nil
}

// withPort is the address of a server: host:11211 if it has no port.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "11211")
	}
	return strings.ToLower(host)
}

// choose returns the server of a key: the server for which a hash of server and key is
// largest. The order of the servers does not matter. Adding or removing a server moves no
// keys between the other servers.
func choose(servers []*server, key string) *server {
	best, highest := servers[0], uint64(0)
	if len(servers) == 1 {
		return best
	}
	for _, s := range servers {
		if h := hash(s.addr, key); h > highest {
			best, highest = s, h
		}
	}
	return best
}

// hash is FNV-1a with a last step that spreads the influence of the last bytes.
func hash(addr, key string) uint64 {
	h := uint64(14695981039346656037)
	for _, text := range [...]string{addr, "\x00", key} {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 1099511628211
		}
	}
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}
