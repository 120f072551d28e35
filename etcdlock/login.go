package etcdlock

import (
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// login creates two clients for a user: a working client, and the door, a client
// without a login. The working client logs in through the door. Close the clients
// together.
//
// etcd 3.4 refuses every call with an expired login. The client of etcd sends the
// expired login even with the request for a new login. The door has no login to send.
func login(ctx context.Context, config clientv3.Config) (clients []*clientv3.Client, err error) {
	outside := config
	outside.Username, outside.Password = "", ""
	door, err := connect(ctx, outside)
	if err != nil {
		return nil, err
	}
	config.DialOptions = append(slices.Clone(config.DialOptions), grpc.WithChainUnaryInterceptor(through(door)))
	client, err := connect(ctx, config)
	if err != nil {
		return nil, errors.Join(err, hangUp(door))
	}
	return []*clientv3.Client{client, door}, nil
}

// through sends requests for a login through the door.
func through(door *clientv3.Client) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if method == "/etcdserverpb.Auth/Authenticate" {
			return door.ActiveConnection().Invoke(ctx, method, req, reply, opts...)
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
}
