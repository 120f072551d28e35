package grpclock_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/grpclock"
	"github.com/holdfast-go/holdfast/memlock"
)

// One call per key at a time: here the key is the service that a health check asks
// about, because gRPC brings that along.
func Example() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	key := func(_ context.Context, _ string, req any) (string, error) {
		if r, ok := req.(*grpc_health_v1.HealthCheckRequest); ok {
			return "service/" + r.GetService(), nil
		}
		return "", nil
	}
	opts := &grpclock.Options{Lock: []holdfast.LockOption{holdfast.Wait(10 * time.Millisecond)}}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpclock.UnaryServerInterceptor(locks, key, opts)),
		grpc.ChainStreamInterceptor(grpclock.StreamServerInterceptor(locks, key, opts)),
	)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	conn := connect(server)
	defer server.Stop()
	client := grpc_health_v1.NewHealthClient(conn)

	ctx := context.Background()
	check := func() {
		_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		if refusal, ok := grpclock.RefusalOf(err); ok && refusal.Reason == grpclock.LockHeld {
			fmt.Println("held for at most a moment more:", refusal.RetryAfter <= 15*time.Second)
			return
		}
		fmt.Println(status.Code(err))
	}
	check()
	lock, err := locks.Lock(ctx, "service/")
	if err != nil {
		log.Fatal(err)
	}
	check()
	if err := lock.Unlock(); err != nil {
		log.Fatal(err)
	}
	check()
	// Output:
	// OK
	// held for at most a moment more: true
	// OK
}

// connect serves on loopback and returns a connection that sends fencing tokens.
func connect(server *grpc.Server) *grpc.ClientConn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(listener)
	conn, err := grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpclock.UnaryClientFence),
		grpc.WithStreamInterceptor(grpclock.StreamClientFence),
	)
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

// A WithdrawRequest is what protoc would make.
type WithdrawRequest struct{ account string }

func (r *WithdrawRequest) GetAccount() string { return r.account }

// The key of a call comes from its request.
func ExampleKeyFunc() {
	key := func(_ context.Context, method string, req any) (string, error) {
		switch r := req.(type) {
		case *WithdrawRequest:
			if r.GetAccount() == "" {
				return "", status.Error(codes.InvalidArgument, "no account")
			}
			return "account/" + r.GetAccount(), nil
		}
		return "", nil // all other calls are unguarded
	}
	fmt.Println(key(context.Background(), "/bank.Bank/Withdraw", &WithdrawRequest{"42"}))
	fmt.Println(key(context.Background(), "/bank.Bank/Withdraw", &WithdrawRequest{}))
	// Output:
	// account/42 <nil>
	//  rpc error: code = InvalidArgument desc = no account
}

// A lock that the client holds guards what the server does: the server refuses the
// calls of those who have lost it.
func ExampleUnaryServerFence() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	var fences fence.Memory
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(grpclock.UnaryServerFence(&fences, nil)))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	client := grpc_health_v1.NewHealthClient(connect(server))
	defer server.Stop()

	call := func(ctx context.Context) error {
		_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err
	}
	err = locks.Do(context.Background(), "account/42", call)
	fmt.Println("with the lock:", status.Code(err))
	err = call(context.Background())
	fmt.Println("without:", status.Code(err))
	// Output:
	// with the lock: OK
	// without: InvalidArgument
}
