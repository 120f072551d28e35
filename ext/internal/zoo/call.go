package zoo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Code is an error that a server answers with. The request has done nothing.
type Code int32

// Answers that callers act on.
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

	inconsistent Code = -2 // of what a Multi has not tried after all
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

// ErrUnknown says that the connection was lost before the answer: whether the
// request was done is not known.
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

// A Stat is what the servers know of a node.
type Stat struct {
	Czxid    int64 // number of the transaction that made it
	Created  time.Time
	Version  int32 // of the data
	Owner    int64 // session that it ends with, 0 for none
	Children int32
}

// Wait returns the error of the answer: a [Code] if the request was refused,
// ErrUnknown if there was none, or that of ctx.
func (c *Call) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	default:
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// complete reports whether an answer has all that is to be in it.
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
	}
	return !r.short
}

// finish enters the answer.
func (c *Call) finish(reply []byte, err error) {
	c.reply, c.err = reply, err
	if err == nil && c.op == opMulti {
		c.err = refusal(reply)
	}
	if c.then != nil {
		c.then(c)
	}
	close(c.done)
}

// refusal returns why a Multi has done nothing, nil if it was done.
func refusal(reply []byte) error {
	r := reader{buf: reply}
	var last error
	for {
		op, done, _ := r.int(), r.bool(), r.int()
		if op != opError || done || r.short {
			return last
		}
		code := Code(r.int())
		switch {
		case code == 0: // It would have been done.
		case code != inconsistent:
			return code
		default:
			last = code
		}
	}
}

// Path returns the name of a node that was created, and its Stat.
func (c *Call) Path() (string, Stat) {
	r := reader{buf: c.reply}
	return r.text(), r.stat()
}

// Data returns the answer to Get.
func (c *Call) Data() (string, Stat) { return c.Path() }

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
