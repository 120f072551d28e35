package redislock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/hosturl"
)

func init() {
	for _, scheme := range []string{"redis", "rediss", "unix"} {
		driver.Register(scheme, open)
	}
}

// open connects to the servers that a URL names.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	client, opts, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // as what Params finds wrong
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	dialer := newDialer(u.Scheme)
	client.DialCtxFn = dialer.dial
	if client.Sentinel.MasterSet != "" {
		client.DialCtxFn = toPrimary(client)
	}
	c, err := connect(ctx, client)
	if err != nil {
		dialer.close()
		return nil, err
	}
	conn := &rueidisConn{client: c, dialer: dialer}
	if err := sane(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return NewConn(conn, opts), nil
}

func connect(ctx context.Context, opts rueidis.ClientOption) (rueidis.Client, error) {
	return within(ctx, func() (rueidis.Client, error) { return rueidis.NewClient(opts) }, rueidis.Client.Close)
}

// within returns what get returns, or the error of ctx when that ends: rueidis
// takes no context where it may have to connect. What comes later is put back.
func within[T any](ctx context.Context, get func() (T, error), put func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := get()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		go func() {
			if a := <-answers; a.err == nil {
				put(a.value)
			}
		}()
		var none T
		return none, ctx.Err()
	}
}

// maxSkew is by how much the clocks of client and server may differ. One token
// from a server whose clock is years ahead would raise those of its slot for
// good.
const maxSkew = 24 * time.Hour

func sane(ctx context.Context, conn Conn) error {
	nodes, err := conn.Primaries(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		r := node.Do(ctx, Command{Words: []string{"TIME"}})[0]
		if r.Err != nil {
			return r.Err
		}
		list, _ := r.Value.([]any)
		if len(list) != 2 {
			return errReply
		}
		text, _ := list[0].(string)
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errReply
		}
		server := time.Unix(seconds, 0)
		if skew := time.Since(server).Abs(); skew > maxSkew {
			return fmt.Errorf("the server's clock says %s, which is %v from this machine's: set the one that is wrong",
				server.UTC().Format(time.DateTime), skew.Round(time.Hour))
		}
	}
	return nil
}

// parse reads a URL.
func parse(u *url.URL) (client rueidis.ClientOption, opts *Options, err error) {
	p := driver.NewParams(u)
	client = rueidis.ClientOption{
		DisableCache:        true,
		ClientName:          "holdfast",
		ReadBufferEachConn:  buffer,
		WriteBufferEachConn: buffer,
	}
	opts = &Options{Prefix: p.String("prefix", DefaultPrefix), Wait: p.Int("wait", 0, 0, 100)}
	client.Sentinel.MasterSet = p.String("master", "")
	client.Sentinel.Username = p.String("sentinel_user", "")
	client.Sentinel.Password = p.String("sentinel_password", "")
	client.Sentinel.TopologyRefreshInterval = refresh
	client.Sentinel.Dialer = forSentinels
	db := p.Int("db", 0, 0, 1<<20)
	ca, cert, key, name := p.String("ca", ""), p.String("cert", ""), p.String("key", ""), p.String("server_name", "")
	if err := p.Err(); err != nil {
		return client, nil, err
	}
	if err := checkPrefix(opts.Prefix); err != nil {
		return client, nil, err
	}
	if u.Opaque != "" || u.Fragment != "" {
		return client, nil, errors.New("want redis://host:port and, if you like, user:password@ before it and /database after it")
	}
	if client.SelectDB = db; db != 0 && u.Scheme != "unix" && strings.Trim(u.Path, "/") != "" {
		return client, nil, errors.New("the database is given twice: after the host and as db")
	}
	if client.Sentinel.MasterSet == "" && client.Sentinel.Username+client.Sentinel.Password != "" || u.Scheme == "unix" && client.Sentinel.MasterSet != "" {
		return client, nil, errors.New("master, and with it sentinel_user and sentinel_password, is for hosts of Sentinels")
	}
	if client.InitAddress, err = addresses(u, client.Sentinel.MasterSet != ""); err != nil {
		return client, nil, err
	}
	if path := strings.Trim(u.Path, "/"); u.Scheme != "unix" && path != "" {
		if client.SelectDB, err = strconv.Atoi(path); err != nil || client.SelectDB < 0 {
			return client, nil, fmt.Errorf("database %q is not a number", path)
		}
	}
	if u.User != nil {
		client.Username = u.User.Username()
		client.Password, _ = u.User.Password()
	}
	if u.Scheme == "rediss" {
		client.TLSConfig, err = hosturl.TLS(ca, cert, key, name)
		client.Sentinel.TLSConfig = client.TLSConfig
	} else if ca+cert+key+name != "" {
		err = errors.New("ca, cert, key and server_name are for rediss://")
	}
	return client, opts, err
}

const (
	buffer  = 1 << 16 // bytes, for each direction of a connection; most messages are a few hundred
	refresh = 2 * time.Second
)

// addresses are the servers of a URL: h1:6379,h2:6379 or a path.
func addresses(u *url.URL, sentinel bool) ([]string, error) {
	if u.Scheme == "unix" {
		if u.Host != "" || u.Path == "" {
			return nil, errors.New("want unix:///path/to/socket")
		}
		return []string{u.Path}, nil
	}
	port := "6379"
	if sentinel {
		port = "26379"
	}
	return hosturl.Addresses(u.Host, port)
}
