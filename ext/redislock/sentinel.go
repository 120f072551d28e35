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
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// glance bounds a question to a Sentinel, which may be one that hangs.
const glance = 500 * time.Millisecond

// forSentinels is the dialer of connections to Sentinels, and marks them by what does
// nothing else.
var forSentinels = net.Dialer{Timeout: refresh, Resolver: net.DefaultResolver}

// toPrimary returns a dialFunc that refuses a server if all Sentinels name another as the
// primary. rueidis does not ask them when it connects again. A primary that was replaced
// while it was away takes itself for one when it is back, until they have told it, some
// seconds later, and would grant locks meanwhile of which nobody else knows. rueidis
// goes on to the other one when it hears of it.
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

// primaryInsteadOf returns whom the Sentinels name as the primary; addr if one of them
// does name that, as those who have not heard of a change still do, or if none answers.
func primaryInsteadOf(ctx context.Context, addr string, opts rueidis.ClientOption) (primary string) {
	named := make([]string, len(opts.InitAddress))
	var all sync.WaitGroup
	for i, sentinel := range opts.InitAddress {
		all.Go(func() { named[i], _ = primaryOf(ctx, sentinel, opts) })
	}
	all.Wait()
	for _, other := range named {
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
	// *2 $9 127.0.0.1 $4 6379, each in a line
	answer, err := ask(conn, answers, 5, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", opts.Sentinel.MasterSet)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(answer[2], answer[4]), nil
}

// ask sends a command, and returns the lines of its answer.
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
