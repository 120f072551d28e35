package etcdlock

import (
	"net/url"
	"strings"
)

// names are the keys of etcd that a Store uses. Those that Holdfast locks are
// escaped in them, so that a slash is always one of ours.
type names struct{ prefix string }

func (n names) claims() string { return n.prefix + "claims/" }

// folder is where the claims on a key are.
func (n names) folder(key string) string { return n.claims() + url.PathEscape(key) + "/" }

// tomb is what keeps an id from coming back.
func (n names) tomb(id string) string { return n.prefix + "ended/" + url.PathEscape(id) }

// post is where a client is told of its claims that were broken.
func (n names) post(client string) string { return n.prefix + "told/" + client + "/" }

// key returns what is locked by a claim of this name.
func (n names) key(name string) (key string, ok bool) {
	rest, ours := strings.CutPrefix(name, n.claims())
	folder, _, two := strings.Cut(rest, "/")
	key, err := url.PathUnescape(folder)
	return key, ours && two && err == nil
}

// beginning is how the claims on all keys with a prefix begin.
func (n names) beginning(prefix string) string { return n.claims() + url.PathEscape(prefix) }
