package servers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// A RedisError is an error reply of the server.
type RedisError string

func (e RedisError) Error() string { return string(e) }

// roundTrip sends one command and returns the reply: a string, an int64, nil or a list of
// these types. A list may also hold a RedisError.
func roundTrip(conn net.Conn, limit time.Duration, args []string) (any, error) {
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	var command strings.Builder
	fmt.Fprintf(&command, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&command, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, command.String()); err != nil {
		return nil, err
	}
	reply, err := readReply(bufio.NewReader(conn))
	if err != nil {
		return nil, err
	}
	if refused, ok := reply.(RedisError); ok {
		return nil, refused
	}
	return reply, nil
}

func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, line := line[0], strings.TrimSuffix(line[1:], "\r\n")
	switch kind {
	case '+':
		return line, nil
	case '-':
		return RedisError(line), nil
	}
	n, err := strconv.ParseInt(line, 10, 64)
	switch {
	case err != nil:
		return nil, err
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		return string(text[:n]), err
	case kind == '*':
		return readReplies(r, n)
	}
	return nil, errors.New("reply of unknown kind " + strconv.QuoteRune(rune(kind)))
}

func readReplies(r *bufio.Reader, n int64) (any, error) {
	list := make([]any, n)
	for i := range list {
		var err error
		if list[i], err = readReply(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}
