package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
	"github.com/holdfast-go/holdfast/redislock/internal/refused"
)

func init() {
	for _, scheme := range []string{"redis", "rediss", "unix"} {
		driver.Register(scheme, open)
	}
}

// open connects to the servers of a URL.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	client, opts, warnings, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // by Params, which wraps ErrURL itself
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
	if err == nil && imitates(ctx, c) {
		c.Close()
		client.ForceSingleClient = true
		c, err = connect(ctx, client)
	}
	if err != nil {
		dialer.close()
		return nil, hosturl.Unproven(err, "ca=FILE names who has signed it, skip_verify=true trusts any certificate")
	}
	conn := &rueidisConn{client: c, dialer: dialer}
	if err := sane(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	s, err := NewConn(conn, opts)
	if err != nil {
		conn.Close()
		return nil, err
	}
	s.warnings = warnings
	s.proof.route = strings.Join(append(client.InitAddress, client.Sentinel.MasterSet), ",")
	if err := s.prove(ctx); errors.Is(err, driver.ErrInvalid) {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func connect(ctx context.Context, opts rueidis.ClientOption) (rueidis.Client, error) {
	client, err := within(ctx, func() (rueidis.Client, error) { return rueidis.NewClient(opts) }, rueidis.Client.Close)
	return client, refused.WithoutArgs(err)
}

// imitates reports whether a server describes its slots like a Cluster of one but is no
// Cluster. miniredis does so, and has neither ROLE nor sharded channels. A Redis whose
// ROLE was renamed still says in INFO that the server is a Cluster.
func imitates(ctx context.Context, c rueidis.Client) bool {
	nodes := c.Nodes()
	if c.Mode() != rueidis.ClientModeCluster || len(nodes) != 1 {
		return false
	}
	for _, node := range nodes {
		err := node.Do(ctx, node.B().Role().Build()).Error()
		if err == nil || !strings.Contains(err.Error(), "unknown command") {
			return false
		}
		facts, err := info(ctx, &rueidisConn{client: node}, "cluster")
		return err == nil && facts["cluster_enabled"] != "1"
	}
	return false
}

// within returns the result of get, or the error of ctx if ctx ends first: rueidis takes
// no context in calls that may have to connect. A value that arrives later goes to put,
// unless put is nil.
func within[T any](ctx context.Context, get func() (T, error), put func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if ctx.Done() == nil {
		return get()
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
		if put != nil {
			go func() {
				if a := <-answers; a.err == nil {
					put(a.value)
				}
			}()
		}
		return none, ctx.Err()
	}
}

// maxSkew bounds the difference between the clocks of client and server. A single token
// from a server whose clock is years ahead would raise the tokens of its slot for good.
const maxSkew = 24 * time.Hour

// sane fails if the clock of a server is wrong. A primary of a Cluster that does not answer
// is left out: only the keys of its slots have to wait.
func sane(ctx context.Context, conn Conn) error {
	brief, cancel := context.WithTimeout(ctx, refresh)
	defer cancel()
	nodes, err := conn.Primaries(brief)
	if len(nodes) == 0 {
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

// parse reads a URL. Parameters mean the same as in rueidis.ParseURL; the parameters by
// which go-redis tunes its pool and calls mean nothing here.
func parse(u *url.URL) (client rueidis.ClientOption, opts *Options, warnings []string, err error) {
	p := driver.NewParams(u)
	client = rueidis.ClientOption{
		DisableCache:        true,
		ClientName:          p.Text("client_name", "holdfast"),
		ReadBufferEachConn:  buffer,
		WriteBufferEachConn: buffer,
		PipelineMultiplex:   -1, // one connection, the one that is proved: see prove
	}
	opts = &Options{Prefix: p.Text("prefix", DefaultPrefix), Wait: p.Int("wait", 0, 0, 100)}
	client.Sentinel.MasterSet = cmp.Or(p.Text("master", ""), p.Text("master_set", ""), p.Text("master_name", ""))
	client.Sentinel.Username = cmp.Or(p.Text("sentinel_user", ""), p.Text("sentinel_username", ""))
	client.Sentinel.Password = p.Text("sentinel_password", "")
	client.Sentinel.TopologyRefreshInterval = refresh
	client.Sentinel.Dialer = forSentinels
	client.Dialer.Timeout = driver.Parse(p, "dial_timeout", 0, "a duration up to 1h, or a number of seconds", timeout)
	client.AlwaysRESP2 = p.OneOf("protocol", "3", "2") == "2"
	more := p.Strings("addr")
	db := p.Int("db", 0, 0, 1<<20)
	ca, cert, key, name := p.Text("ca", ""), p.Text("cert", ""), p.Text("key", ""), p.Text("server_name", "")
	unproven := p.Bool("skip_verify", false)
	p.Ignore(tuning...)
	if err := p.Err(); err != nil {
		return client, nil, nil, err
	}
	if err := checkPrefix(opts.Prefix); err != nil {
		return client, nil, nil, err
	}
	sentinel := client.Sentinel.MasterSet != ""
	switch {
	case u.Opaque != "" || u.Fragment != "":
		err = errors.New("want redis://host:port and, if you like, user:password@ before it and /database after it")
	case db != 0 && u.Scheme != "unix" && strings.Trim(u.Path, "/") != "":
		err = errors.New("the database is given twice: after the host and as db")
	case !sentinel && client.Sentinel.Username+client.Sentinel.Password != "" || u.Scheme == "unix" && sentinel:
		err = errors.New("master, and with it sentinel_user and sentinel_password, is for hosts of Sentinels")
	case u.Scheme != "rediss" && ca+cert+key+name != "":
		err = errors.New("ca, cert, key and server_name are for rediss://")
	}
	if err != nil {
		return client, nil, nil, err
	}
	if client.InitAddress, err = addresses(u, more, sentinel); err != nil {
		return client, nil, nil, err
	}
	client.SelectDB = db
	if path := strings.Trim(u.Path, "/"); u.Scheme != "unix" && path != "" {
		if client.SelectDB, err = strconv.Atoi(path); err != nil || client.SelectDB < 0 {
			return client, nil, nil, errors.New("the database after the host is not a number")
		}
	}
	if u.User != nil {
		client.Username = u.User.Username()
		client.Password, _ = u.User.Password()
	}
	if u.Scheme != "rediss" {
		if client.Password+client.Sentinel.Password != "" {
			warnings = hosturl.Plain(client.InitAddress, "use rediss://")
		}
		return client, opts, warnings, nil
	}
	if client.TLSConfig, err = hosturl.TLS(ca, cert, key, name); err == nil {
		client.TLSConfig.InsecureSkipVerify = unproven
	}
	client.Sentinel.TLSConfig = client.TLSConfig
	return client, opts, nil, err
}

// timeout parses a duration. A plain number means seconds, as in go-redis. In go-redis, 0
// or less means no timeout; here it means the default.
func timeout(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if seconds, e := strconv.Atoi(text); e == nil {
		d, err = time.Duration(min(max(seconds, 0), 3601))*time.Second, nil
	}
	if err == nil && (d > time.Hour || d > 0 && d < 100*time.Millisecond) {
		err = strconv.ErrRange
	}
	return max(d, 0), err
}

// tuning lists parameters of rueidis and go-redis for the number of connections, for
// retries and for time limits. The Store decides these by itself.
var tuning = []string{
	"client_cache", "max_retries", "min_retry_backoff", "max_retry_backoff", "read_timeout", "write_timeout",
	"pool_fifo", "pool_size", "pool_timeout", "min_idle_conns", "max_idle_conns", "max_active_conns", "max_concurrent_dials",
	"conn_max_idle_time", "conn_max_lifetime", "conn_max_lifetime_jitter", "idle_timeout", "max_conn_age",
	"max_redirects", "read_only", "route_by_latency", "route_randomly",
}

const (
	buffer  = 1 << 16 // bytes, for each direction of a connection; most messages are a few hundred
	refresh = 2 * time.Second
)

// addresses returns the servers of a URL: h1:6379,h2:6379 and more, or a path.
func addresses(u *url.URL, more []string, sentinel bool) ([]string, error) {
	if u.Scheme == "unix" {
		if u.Host != "" || u.Path == "" || more != nil {
			return nil, errors.New("want unix:///path/to/socket")
		}
		return []string{u.Path}, nil
	}
	port := "6379"
	if sentinel {
		port = "26379"
	}
	if u.Host != "" {
		more = append([]string{u.Host}, more...)
	}
	return hosturl.Addresses(strings.Join(more, ","), port)
}
