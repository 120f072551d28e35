package verify

import (
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/ext/internal/hosturl"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// A link is what lies between one worker and the store: a proxy before each
// server, or nothing if the store has no network.
type link struct {
	url     string // for the worker
	proxies []*servers.Proxy
}

func newLink(h *servers.Host, t *target) (*link, error) {
	if !t.networked() {
		return &link{url: t.url.String()}, nil
	}
	addresses, err := hosturl.Addresses(t.url.Host, ports[t.url.Scheme])
	if err != nil {
		return nil, err
	}
	l := &link{}
	var hosts []string
	err = h.Try(func() {
		for _, address := range addresses {
			p := servers.StartProxy(h, address)
			l.proxies = append(l.proxies, p)
			hosts = append(hosts, p.Addr())
		}
	})
	own := *t.url
	own.Host = strings.Join(hosts, ",")
	l.url = own.String()
	return l, err
}

// cut holds everything back while on.
func (l *link) cut(on bool) {
	for _, p := range l.proxies {
		p.Blackhole(on)
	}
}

// delay lets everything come later.
func (l *link) delay(by time.Duration) {
	for _, p := range l.proxies {
		p.Requests.Delay(by)
		p.Replies.Delay(by)
	}
}

// dropReplies loses all answers while on.
func (l *link) dropReplies(on bool) {
	for _, p := range l.proxies {
		p.Replies.Drop(on)
	}
}
