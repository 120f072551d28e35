package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/hosturl"
)

func init() {
	driver.Register("etcd", open)
	driver.Register("etcds", open)
}

// open connects to the members in a URL.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	config, opts, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // like the errors of Params
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	clients, err := dial(ctx, config)
	if err != nil {
		return nil, misdialled(err)
	}
	s, err := New(clients[0], opts)
	if err != nil {
		for _, client := range clients {
			client.Close()
		}
		return nil, err
	}
	s.owned = clients
	// The client connects in the background. A probe shows whether a member answers.
	if err := s.probe(ctx); err != nil && !errors.Is(err, driver.ErrInvalid) { // Check reports ErrInvalid.
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// dial creates the clients of a Store, the working client first.
func dial(ctx context.Context, config clientv3.Config) ([]*clientv3.Client, error) {
	if config.Username != "" {
		return login(ctx, config)
	}
	client, err := connect(ctx, config)
	return []*clientv3.Client{client}, err
}

// connect creates a client. With a password, the client logs in.
func connect(ctx context.Context, config clientv3.Config) (*clientv3.Client, error) {
	deadline, _ := ctx.Deadline()
	config.DialTimeout = time.Until(deadline)
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	config.Context = life
	client, err := clientv3.New(config)
	if !stop() || err != nil {
		end()
		if err == nil {
			client.Close()
		}
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			err = ctx.Err()
		}
		return nil, err
	}
	return client, nil
}

// parse reads a URL.
func parse(u *url.URL) (config clientv3.Config, opts *Options, err error) {
	p := driver.NewParams(u)
	opts = &Options{Prefix: p.Text("prefix", DefaultPrefix)}
	ca, cert, key := p.Text("ca", ""), p.Text("cert", ""), p.Text("key", "")
	if err := p.Err(); err != nil {
		return config, nil, err
	}
	if err := checkPrefix(opts.Prefix); err != nil {
		return config, nil, err
	}
	if u.Opaque != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return config, nil, errors.New("want etcd://host:port,host:port and, if you like, user:password@ before them")
	}
	config = clientv3.Config{
		// The client gives up a hanging member after this time. gRPC does not check
		// sooner, and members do not allow earlier checks.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: 3 * time.Second,
			}),
			grpc.WithChainUnaryInterceptor(failFast),
		},
		MaxUnaryRetries: 2,            // one for a new login; the Store does the rest
		Logger:          zap.NewNop(), // The errors contain everything important.
	}
	if config.Endpoints, err = endpoints(u); err != nil {
		return config, nil, err
	}
	if u.User != nil {
		config.Username = u.User.Username()
		config.Password, _ = u.User.Password()
		if config.Username == "" || config.Password == "" {
			return config, nil, errors.New("a user has a password: etcd://user:password@host")
		}
	}
	if u.Scheme == "etcds" {
		config.TLS, err = hosturl.TLS(ca, cert, key, "")
	} else if ca+cert+key != "" {
		err = errors.New("ca, cert and key are for etcds://")
	}
	return config, opts, err
}

// failFast makes calls fail if there is no connection. By default the client waits
// for a connection, and the caller never learns why there is none.
func failFast(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, conn, append(opts, grpc.WaitForReady(false))...)
}

// endpoints returns the members of a URL: h1:2379,h2:2379.
func endpoints(u *url.URL) ([]string, error) {
	scheme := "http://"
	if u.Scheme == "etcds" {
		scheme = "https://"
	}
	all, err := hosturl.Addresses(u.Host, "2379")
	for i := range all {
		all[i] = scheme + all[i]
	}
	return all, err
}
