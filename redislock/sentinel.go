package redislock

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// glance bounds a query to a Sentinel, because the Sentinel may hang.
const glance = 500 * time.Millisecond

// forSentinels is the dialer of connections to Sentinels. Its Resolver only marks the
// connections: net.DefaultResolver is also what nil means.
var forSentinels = net.Dialer{Timeout: refresh, Resolver: net.DefaultResolver}

// toPrimary returns a dialFunc that refuses a server if the Sentinels that answer all
// name another server as the primary. The check is needed because rueidis does not ask
// the Sentinels before reconnecting. A primary that was replaced while away comes back as
// a primary, until the Sentinels demote it some seconds later. Meanwhile the server would
// grant locks unknown to every other server. rueidis moves on to the new primary after
// hearing of the change.
func toPrimary(opts rueidis.ClientOption) dialFunc {
	plain := opts.DialCtxFn
	return func(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		conn, err := plain(ctx, addr, d, config)
		if err != nil || d.Resolver == forSentinels.Resolver {
			return conn, err
		}
		if primary := primaryInsteadOf(ctx, addr, opts); primary != addr {
			conn.Close()
			return nil, fmt.Errorf("%s is not the primary any more: the Sentinels name %s", addr, primary)
		}
		return conn, nil
	}
}

// primaryInsteadOf returns the primary that the Sentinels name. The result is addr if at
// least one Sentinel names addr, which may not have heard of a change yet, or if no
// Sentinel answers. The first Sentinel that names addr is enough: others may hang.
func primaryInsteadOf(ctx context.Context, addr string, opts rueidis.ClientOption) (primary string) {
	named := make(chan string, len(opts.InitAddress))
	for _, sentinel := range opts.InitAddress {
		go func() {
			other, _ := primaryOf(ctx, sentinel, opts)
			named <- other
		}()
	}
	for range opts.InitAddress {
		other := <-named
		if other == addr {
			return addr
		}
		primary = cmp.Or(primary, other)
	}
	return cmp.Or(primary, addr)
}

// primaryOf asks a Sentinel for the primary.
func primaryOf(ctx context.Context, sentinel string, opts rueidis.ClientOption) (addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	conn, err := opts.DialCtxFn(ctx, sentinel, &opts.Sentinel.Dialer, opts.Sentinel.TLSConfig)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	late, _ := ctx.Deadline()
	if err := conn.SetDeadline(late); err != nil {
		return "", err
	}
	answers := bufio.NewScanner(conn)
	if opts.Sentinel.Password != "" {
		words := []string{"AUTH", cmp.Or(opts.Sentinel.Username, "default"), opts.Sentinel.Password}
		if answer, err := ask(conn, answers, 1, words...); err != nil || answer[0] != "+OK" {
			return "", cmp.Or(err, errReply)
		}
	}
	// *2 $9 127.0.0.1 $4 6379, each on a line of its own
	answer, err := ask(conn, answers, 5, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", opts.Sentinel.MasterSet)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(answer[2], answer[4]), nil
}

// ask sends a command and returns the lines of the answer.
func ask(conn net.Conn, answers *bufio.Scanner, lines int, words ...string) (answer []string, err error) {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return nil, err
	}
	for len(answer) < lines {
		if !answers.Scan() || strings.HasPrefix(answers.Text(), "-") || answers.Text() == "*-1" {
			return nil, cmp.Or(answers.Err(), errReply)
		}
		answer = append(answer, answers.Text())
	}
	return answer, nil
}
