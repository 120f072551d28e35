package etcdlock

import (
	"net/url"
	"strings"
)

// names are the keys of etcd used by a Store. The locked keys are escaped, so every
// slash is a separator of etcdlock.
type names struct{ prefix string }

func (n names) claims() string { return n.prefix + "claims/" }

// folder returns the folder of the claims on a key.
func (n names) folder(key string) string { return n.claims() + url.PathEscape(key) + "/" }

// last returns the key of the name of the claim that was the last to join a queue unread.
func (n names) last(key string) string { return n.prefix + "last/" + url.PathEscape(key) }

// tomb returns the key of the tomb for an id: the tomb keeps the id from coming back.
func (n names) tomb(id string) string { return n.prefix + "ended/" + url.PathEscape(id) }

// notices returns the folder where a client is notified of its broken claims.
func (n names) notices(client string) string { return n.prefix + "told/" + client + "/" }

// key returns the locked key of a claim with this name.
func (n names) key(name string) (key string, ok bool) {
	rest, ours := strings.CutPrefix(name, n.claims())
	folder, _, two := strings.Cut(rest, "/")
	key, err := url.PathUnescape(folder)
	return key, ours && two && err == nil
}

// beginning returns the common prefix of the claims on all keys with a prefix.
func (n names) beginning(prefix string) string { return n.claims() + url.PathEscape(prefix) }
