package zoo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Code is an error in a server's answer. The request has done nothing.
type Code int32

// Answers that callers handle.
const (
	NoNode        Code = -101
	NoAuth        Code = -102
	BadVersion    Code = -103
	NodeExists    Code = -110
	NotEmpty      Code = -111
	Expired       Code = -112
	InvalidACL    Code = -114
	AuthFailed    Code = -115
	Unimplemented Code = -6

	inconsistent Code = -2 // of requests that a Multi has not tried after all
)

var words = map[Code]string{
	NoNode:        "no such node",
	NoAuth:        "permission denied",
	BadVersion:    "the node has changed",
	NodeExists:    "the node is there already",
	NotEmpty:      "the node has children",
	Expired:       "the session has expired",
	InvalidACL:    "not a valid ACL",
	AuthFailed:    "authentication failed",
	Unimplemented: "the server does not know this operation",
}

func (c Code) Error() string {
	if text, ok := words[c]; ok {
		return "zookeeper: " + text
	}
	return fmt.Sprintf("zookeeper: error %d", int32(c))
}

// ErrUnknown says that the connection was lost before the answer. The request may or may
// not have taken effect.
var ErrUnknown = errors.New("zookeeper: connection lost")

// A Call is a request on its way.
type Call struct {
	op   int32
	path string
	xid  int32
	done chan struct{}
	then func(*Call) // nil, or called before done is closed

	err   error
	reply []byte
}

// A Stat is the servers' record of a node.
type Stat struct {
	Czxid    int64 // number of the transaction that created the node
	Created  time.Time
	Version  int32 // of the data
	Owner    int64 // session of an ephemeral node, 0 for none
	Children int32
}

// Wait returns the error of the answer: a [Code] if the request was refused, ErrUnknown
// without an answer, or the error of ctx.
func (c *Call) Wait(ctx context.Context) error {
	if c.Answered() {
		return c.err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Answered reports whether Wait would return at once.
func (c *Call) Answered() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// complete reports whether an answer has all its parts.
func (c *Call) complete(reply []byte) bool {
	r := reader{buf: reply}
	switch c.op {
	case opCreate:
		if path, stat := r.text(), r.stat(); !strings.HasPrefix(path, c.path) || stat.Czxid <= 0 {
			return false
		}
	case opGet:
		r.text()
		r.stat()
	case opExists:
		r.stat()
	case opChildren:
		r.texts()
	case opMulti:
		path, zxid, err := r.results()
		if err == nil && c.path != "" && (!strings.HasPrefix(path, c.path) || zxid <= 0) {
			return false
		}
	}
	return !r.short
}

// finish sets the answer.
func (c *Call) finish(reply []byte, err error) {
	c.reply, c.err = reply, err
	if err == nil && c.op == opMulti {
		r := reader{buf: reply}
		_, _, c.err = r.results()
	}
	if c.then != nil {
		c.then(c)
	}
	close(c.done)
}

// results returns the results of a Multi: the last created node, the number of the
// transaction, or the error for which nothing was done. Servers return the Stat of a
// container; only the newest servers return the Stat of other nodes.
func (r *reader) results() (path string, zxid int64, err error) {
	for {
		op, done, _ := r.int(), r.bool(), r.int()
		switch {
		case done || r.short:
			return path, zxid, err
		case op == opCreated:
			path = r.text()
		case op == opCreate:
			path, zxid = r.text(), r.stat().Czxid
		case op == opSet:
			r.stat()
		case op == opError:
			code := Code(r.int())
			if code != 0 && (err == nil || err == inconsistent) { // zero means that the request would have succeeded
				err = code
			}
		}
	}
}

// Made returns the created node, and the number of the transaction. After a Multi that
// begins with a container, Made returns the last node.
func (c *Call) Made() (path string, zxid int64) {
	r := reader{buf: c.reply}
	if c.op == opMulti {
		path, zxid, _ = r.results()
		return path, zxid
	}
	return r.text(), r.stat().Czxid
}

// Data returns the answer to Get.
func (c *Call) Data() (string, Stat) {
	r := reader{buf: c.reply}
	return r.text(), r.stat()
}

// Stat returns the answer to Exists.
func (c *Call) Stat() Stat {
	r := reader{buf: c.reply}
	return r.stat()
}

// Children returns the answer to List, in no order.
func (c *Call) Children() []string {
	r := reader{buf: c.reply}
	return r.texts()
}

func (r *reader) stat() (s Stat) {
	s.Czxid = r.long()
	r.long() // of the last change
	s.Created = time.UnixMilli(r.long())
	r.long() // last change
	s.Version = r.int()
	r.int() // other versions
	r.int()
	s.Owner = r.long()
	r.int() // length
	s.Children = r.int()
	r.long() // of the last change of the children
	return s
}
