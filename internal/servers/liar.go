package servers

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync/atomic"
)

// StartLiar listens on a free port as a server that speaks the protocol of Redis, and returns
// the address. answer gets the number of a connection, from 0, and the words of a command. It
// returns a reply: a string, an int64, nil, a RedisError or a []any of these types. answer is
// called by several connections at the same time.
func StartLiar(tb TB, answer func(connection int, words []string) any) string {
	tb.Helper()
	var connections atomic.Int64
	return StartStranger(tb, func(client net.Conn) {
		number := int(connections.Add(1)) - 1
		r := bufio.NewReader(client)
		for {
			command, err := readReply(r) // a command looks like a list of strings
			list, ok := command.([]any)
			if err != nil || !ok {
				return
			}
			words := make([]string, len(list))
			for i := range list {
				words[i], _ = list[i].(string)
			}
			if _, err := io.WriteString(client, encode(answer(number, words))); err != nil {
				return
			}
		}
	})
}

// encode is the opposite of readReply.
func encode(reply any) string {
	switch reply := reply.(type) {
	case RedisError:
		return "-" + string(reply) + "\r\n"
	case int64:
		return fmt.Sprintf(":%d\r\n", reply)
	case string:
		return fmt.Sprintf("$%d\r\n%s\r\n", len(reply), reply)
	case []any:
		text := fmt.Sprintf("*%d\r\n", len(reply))
		for _, e := range reply {
			text += encode(e)
		}
		return text
	}
	return "$-1\r\n"
}
