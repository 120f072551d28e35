package redlock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// openLimit is the time in which a node has to open.
const openLimit = 2 * time.Second

func init() { driver.Register("redlock", open) }

// open makes the Store of a URL. A majority of the nodes must answer. The remaining nodes
// are opened when the Store next needs them.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	s, err := parse(u)
	if err != nil {
		return nil, err
	}
	_, err = gather(ctx, s, openLimit, func(ctx context.Context, n *node) (any, error) {
		return nil, n.call(ctx, func(driver.Store) error { return nil })
	})
	for _, n := range s.nodes {
		// A wrong URL is an error even if a majority answers. So is a server that does not
		// exclude, whose yes would count.
		if wrong := n.unfit(); wrong != nil {
			err = wrong
		}
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// unfit returns the error of a node that no later try mends, or nil.
func (n *node) unfit() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case errors.Is(n.failure, driver.ErrURL):
		return n.failure
	case errors.Is(n.failure, driver.ErrInvalid):
		return n.named(n.failure)
	}
	return nil
}

// parse makes the Store of a URL without opening the nodes.
func parse(u *url.URL) (*Store, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, driver.NewParams(u).Err()
	}
	quarantine, err := parseQuarantine(query)
	if err != nil {
		return nil, err
	}
	urls := query["node"]
	if len(urls) == 0 {
		urls, err = redisNodes(u, query)
	} else if u.Host+u.Path+u.Opaque != "" || u.User != nil || len(query) > 1 {
		err = wrong("beside node=URL it takes quarantine only: write the rest into the URL of each node")
	}
	switch {
	case err != nil:
		return nil, err
	case u.Fragment != "":
		return nil, wrong("a # is written %%23")
	case len(urls) < fewest:
		return nil, wrong("it names %d nodes (want %d or more)", len(urls), fewest)
	}
	s := newStore(quarantine)
	for i, raw := range urls {
		name, err := nameOf(raw)
		if err != nil {
			return nil, wrong("node %d: %w", i+1, err)
		}
		s.add(name, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, raw) })
	}
	return s, nil
}

// parseQuarantine removes the parameter quarantine from the query and returns the value.
func parseQuarantine(query url.Values) (time.Duration, error) {
	own := url.URL{RawQuery: url.Values{"quarantine": query["quarantine"]}.Encode()}
	p := driver.NewParams(&own)
	quarantine := p.Duration("quarantine", defaultQuarantine, 0, 31*24*time.Hour)
	query.Del("quarantine")
	if quarantine == 0 {
		quarantine = -1
	}
	return quarantine, p.Err()
}

// redisNodes returns the URLs of the Redis servers that a URL names: one URL for each
// host, with everything else the same.
func redisNodes(u *url.URL, query url.Values) (urls []string, err error) {
	scheme := "redis"
	if given := query["scheme"]; len(given) > 0 {
		if scheme = given[0]; len(given) > 1 || scheme != "redis" && scheme != "rediss" {
			return nil, wrong("the parameter scheme is not redis or rediss")
		}
		query.Del("scheme")
	}
	if u.Host == "" {
		return nil, wrong("it names no nodes, as redlock://host1:6379,host2:6379,host3:6379 does")
	}
	seen := make(map[string]bool)
	for _, host := range strings.Split(u.Host, ",") {
		if host == "" || seen[host] {
			return nil, wrong("host %q is empty, or there twice: a node counts once", host)
		}
		seen[host] = true
		one := url.URL{Scheme: scheme, User: u.User, Host: host, Path: u.Path, RawPath: u.RawPath, RawQuery: query.Encode()}
		urls = append(urls, one.String())
	}
	return urls, nil
}

// nameOf returns the displayed name of a node: the URL without secrets.
func nameOf(raw string) (string, error) {
	u, err := driver.ParseURL(raw)
	if err != nil {
		return "", errors.New("its URL does not parse; write & in it as %26, % as %25")
	}
	return driver.Redact(u), nil
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", driver.ErrURL, fmt.Errorf(format, args...))
}
