package verify

import (
	"cmp"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/hosturl"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A link is the way between a worker and the store: a proxy before each server, or nothing
// if no fault needs a proxy.
type link struct {
	url     string // for the worker
	proxies []*servers.Proxy
}

// port returns the port of a server whose URL names no port.
func port(scheme string) string {
	switch scheme {
	case "etcd":
		return "2379"
	case "memcached":
		return "11211"
	case "nats":
		return "4222"
	case "s3", "gs", "dynamodb", "azblob":
		return "80"
	case "zk":
		return "2181"
	case "postgres", "postgresql":
		return cmp.Or(os.Getenv("PGPORT"), "5432")
	case "mysql", "mariadb":
		return "3306"
	case "sqlserver":
		return "1433"
	}
	return "6379" // of Redis
}

// newLink makes the link of a worker to the store of a URL. If a nemesis needs proxies, the
// store must permit proxies.
func newLink(h *servers.Host, to *url.URL, nemeses []plan.Nemesis) (*link, error) {
	l := &link{url: to.String()}
	if !slices.ContainsFunc(nemeses, plan.Nemesis.Network) {
		return l, nil
	}
	own, params := *to, to.Query()
	if to.Scheme == "s3" || to.Scheme == "gs" || to.Scheme == "dynamodb" || to.Scheme == "azblob" { // whose host is the bucket, the table or the account
		endpoint, err := url.Parse(params.Get("endpoint"))
		if err != nil {
			return nil, err
		}
		if endpoint.Host, err = l.intercept(h, endpoint.Host, port(to.Scheme)); err != nil {
			return nil, err
		}
		params.Set("endpoint", endpoint.String())
		own.RawQuery = params.Encode()
		l.url = own.String()
		return l, nil
	}
	var err error
	if own.Host, err = l.intercept(h, to.Host, port(to.Scheme)); err != nil {
		return nil, err
	}
	if params.Has("listen") { // a second address of PostgreSQL
		listen, err := l.intercept(h, params.Get("listen"), port(to.Scheme))
		if err != nil {
			return nil, err
		}
		params.Set("listen", listen)
		own.RawQuery = params.Encode()
	}
	l.url = own.String()
	return l, nil
}

// intercept starts a proxy before each host, and returns the addresses of the proxies.
func (l *link) intercept(h *servers.Host, hosts, port string) (string, error) {
	addresses, err := hosturl.Addresses(hosts, port)
	if err != nil {
		return "", err
	}
	var own []string
	err = h.Try(func() {
		for _, address := range addresses {
			p := servers.StartProxy(h, address)
			l.proxies = append(l.proxies, p)
			own = append(own, p.Addr())
		}
	})
	return strings.Join(own, ","), err
}

// address returns the index of the store's address that a number means.
func (l *link) address(n int) int { return n % len(l.proxies) }

// cut holds back, while on, the connections of a partition.
func (l *link) cut(f plan.Fault, on bool) {
	for i, p := range l.proxies {
		if !f.Part || i == l.address(f.Node) {
			p.Blackhole(on)
		}
	}
}

// delay delays everything.
func (l *link) delay(by time.Duration) {
	for _, p := range l.proxies {
		p.Requests.Delay(by)
		p.Replies.Delay(by)
	}
}

// dropReplies loses every reply while on.
func (l *link) dropReplies(on bool) {
	for _, p := range l.proxies {
		p.Replies.Drop(on)
	}
}

// touched counts the pieces that were held back, delayed or lost up to now.
func (l *link) touched() (n int) {
	for _, p := range l.proxies {
		n += p.Requests.Touched() + p.Replies.Touched()
	}
	return n
}

// unused reports whether the worker bypasses every proxy.
func (l *link) unused() bool {
	return len(l.proxies) > 0 && !slices.ContainsFunc(l.proxies, func(p *servers.Proxy) bool { return p.Accepted() > 0 })
}
