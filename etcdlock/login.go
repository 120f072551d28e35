package etcdlock

import (
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// login creates two clients for a user: a working client, and an anonymous client that
// never logs in. The working client sends its requests for a login by the anonymous
// client. Close the clients together.
//
// etcd 3.4 refuses every call with an expired login. The client of etcd sends the
// expired login even with the request for a new login. The anonymous client
// has no login to send.
func login(ctx context.Context, config clientv3.Config) (clients []*clientv3.Client, err error) {
	outside := config
	outside.Username, outside.Password = "", ""
	anonymous, err := connect(ctx, outside)
	if err != nil {
		return nil, err
	}
	config.DialOptions = append(slices.Clone(config.DialOptions), grpc.WithChainUnaryInterceptor(loginBy(anonymous)))
	client, err := connect(ctx, config)
	if err != nil {
		return nil, errors.Join(err, closeClient(anonymous))
	}
	return []*clientv3.Client{client, anonymous}, nil
}

// loginBy sends requests for a login by the anonymous client.
func loginBy(anonymous *clientv3.Client) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if method == "/etcdserverpb.Auth/Authenticate" {
			return anonymous.ActiveConnection().Invoke(ctx, method, req, reply, opts...)
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
}
