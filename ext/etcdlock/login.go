package etcdlock

import (
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// login makes clients for a user: one that does the work, and a door, by which that
// logs in. They are to be closed together.
//
// etcd 3.4 refuses every call that carries a login which has expired, and its client
// sends that also with the call that asks for a new one. At the door there is none.
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

// through sends what asks for a login through the door.
func through(door *clientv3.Client) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if method == "/etcdserverpb.Auth/Authenticate" {
			return door.ActiveConnection().Invoke(ctx, method, req, reply, opts...)
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
}
