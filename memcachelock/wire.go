package memcachelock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// A serverError is the error with which a server refuses a command, such as "SERVER_ERROR
// out of memory storing object".
type serverError string

func (e serverError) Error() string { return "memcached: " + string(e) }

// full is the answer of a server that may not evict and has no memory left.
const full = serverError("SERVER_ERROR out of memory storing object")

// A reply is the answer to one command: the first word, and the flags of a meta command.
type reply struct {
	code  string // VA, HD, EN, NF, NS, EX, STORED, NOT_STORED, EXISTS, NOT_FOUND
	value string // of VA
	cas   uint64 // c
	left  int64  // t: the whole seconds that the item has left, -1 if the item stays
	err   error  // a serverError, instead of every other field
}

// A conn is a connection to one run of a server.
type conn struct {
	net.Conn
	lines  *bufio.Reader
	failed bool // the connection cannot be used again
	used   bool // the connection has served a call

	run    string        // names the run
	epoch  uint64        // when the run began, in seconds since 1970 by the server's clock
	opened time.Time     // by our clock
	wall   int64         // by the server's clock, in seconds since 1970, when opened
	late   time.Duration // how old wall may have been
	asked  time.Time     // when the last commands were sent
}

// bind makes reads and writes fail when ctx ends. free undoes that.
func (c *conn) bind(ctx context.Context) (free func(), err error) {
	deadline, _ := ctx.Deadline() // no deadline is the zero time, as for a net.Conn
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if ctx.Done() == nil {
		return func() {}, nil
	}
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	return func() {
		if !stop() {
			c.failed = true
		}
	}, nil
}

// exchange sends commands in one piece, and reads n replies.
func (c *conn) exchange(commands []byte, n int) ([]reply, error) {
	c.asked = time.Now()
	if _, err := c.Write(commands); err != nil {
		c.failed = true
		return nil, err
	}
	replies := make([]reply, n)
	for i := range replies {
		if err := c.receive(&replies[i]); err != nil {
			c.failed = true
			return nil, c.broken(err)
		}
	}
	return replies, nil
}

// broken names the connection that has ended.
func (c *conn) broken(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has closed the connection: %w", c.RemoteAddr(), err)
	}
	return err
}

func (c *conn) receive(r *reply) error {
	line, err := c.line()
	if err != nil {
		return err
	}
	code, flags, _ := strings.Cut(line, " ")
	switch r.code = code; code {
	case "STORED", "NOT_STORED", "EXISTS", "NOT_FOUND", "EN", "NF", "NS", "EX":
		return nil
	case "HD":
		return r.flags(flags)
	case "VA":
		return c.value(r, flags)
	case "SERVER_ERROR":
		r.err = serverError(line)
		return nil
	case "ERROR", "CLIENT_ERROR":
		// The next line may not be the reply to the next command.
		return serverError(line)
	}
	return fmt.Errorf("%s is no Memcached server: it answers %.60q", c.RemoteAddr(), line)
}

// line reads a line without its end.
func (c *conn) line() (string, error) {
	line, err := c.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("%s is no Memcached server: it answers %.60q", c.RemoteAddr(), line)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

// maxValue bounds the memory for a reply.
const maxValue = 1 << 30

func (c *conn) value(r *reply, text string) error {
	text, flags, _ := strings.Cut(text, " ")
	size, err := strconv.ParseUint(text, 10, 64)
	if err != nil || size > maxValue {
		return fmt.Errorf("memcached: a value of %.20q bytes", text)
	}
	value := make([]byte, size+2) // with the end of the line
	for n := 0; n < len(value); {
		m, err := c.lines.Read(value[n:])
		if err != nil {
			return err
		}
		n += m
	}
	r.value = string(value[:size])
	return r.flags(flags)
}

func (r *reply) flags(text string) (err error) {
	for flag := range strings.FieldsSeq(text) {
		switch flag[0] {
		case 'c':
			r.cas, err = strconv.ParseUint(flag[1:], 10, 64)
		case 't':
			r.left, err = strconv.ParseInt(flag[1:], 10, 64)
		}
		if err != nil {
			return fmt.Errorf("memcached: flag %.30q", flag)
		}
	}
	return nil
}

// stats reads the values of "stats" or "stats settings".
func (c *conn) stats(command string) (map[string]string, error) {
	values := make(map[string]string)
	err := c.list(command, func(line string) {
		if name, value, ok := strings.Cut(strings.TrimPrefix(line, "STAT "), " "); ok {
			values[name] = value
		}
	})
	return values, err
}

// list sends a command and reads lines until END.
func (c *conn) list(command string, take func(line string)) error {
	c.asked = time.Now()
	_, err := c.Write([]byte(command + "\r\n"))
	for err == nil {
		var line string
		line, err = c.line()
		code, _, _ := strings.Cut(line, " ")
		switch {
		case err != nil:
		case code == "END":
			return nil
		case code == "ERROR" || code == "CLIENT_ERROR" || code == "SERVER_ERROR" || code == "BUSY":
			return serverError(line) // and nothing after it
		default:
			take(line)
		}
	}
	c.failed = true
	return c.broken(err)
}
