package demo

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

// A site is an HTTP server of the parent process, on a free port of this machine.
type site struct {
	url    string
	server *http.Server
	done   chan struct{} // closed when the server has ended
}

func openSite(h http.Handler) (*site, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{
		url:    "http://" + listener.Addr().String(),
		server: &http.Server{Handler: h},
		done:   make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		s.server.Serve(listener)
	}()
	return s, nil
}

func (s *site) close() {
	s.server.Close()
	<-s.done
}

// roundRobin is the proxy in front of the servers. Requests go to the servers in turn.
func roundRobin(addresses []string) (http.Handler, error) {
	targets := make([]*url.URL, len(addresses))
	for i, address := range addresses {
		target, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		targets[i] = target
	}
	var count atomic.Uint64
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(targets[count.Add(1)%uint64(len(targets))])
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: maxBuyers},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "proxy: "+err.Error(), http.StatusBadGateway)
		},
	}, nil
}
