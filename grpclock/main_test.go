package grpclock

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

// patience bounds what should not take long, to show a hang.
const patience = time.Minute

// A service does in its calls what a test wants.
type service struct {
	pb.UnimplementedTestServiceServer
	unary  func(ctx context.Context, req *pb.SimpleRequest) error
	stream func(s chat) error
}

type chat = grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]

func (s *service) UnaryCall(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{Username: "done"}, s.unary(ctx, req)
}

func (s *service) FullDuplexCall(stream chat) error { return s.stream(stream) }

// serve starts a server on loopback and returns a client of it.
func serve(t *testing.T, s *service, opts ...grpc.ServerOption) *client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(opts...)
	pb.RegisterTestServiceServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(UnaryClientFence), grpc.WithStreamInterceptor(StreamClientFence))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{pb.NewTestServiceClient(conn)}
}

type client struct{ pb.TestServiceClient }

// call makes a unary call whose request names the key.
func (c *client) call(ctx context.Context, key string) error {
	reply, err := c.UnaryCall(ctx, &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(key)}})
	if err == nil && reply.GetUsername() != "done" {
		err = errors.New("the handler's reply was lost")
	}
	return err
}

// talk begins a stream whose metadata names the key.
func (c *client) talk(ctx context.Context, key string) (grpc.BidiStreamingClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse], error) {
	return c.FullDuplexCall(metadata.AppendToOutgoingContext(ctx, "key-bin", key))
}

// byBody takes the key from the request, or from the metadata of a stream.
func byBody(ctx context.Context, method string, req any) (string, error) {
	if r, ok := req.(*pb.SimpleRequest); ok {
		return string(r.GetPayload().GetBody()), nil
	}
	return Metadata("key-bin")(ctx, method, req)
}

// guarded are the options of a server whose calls take locks.
func guarded(locks *holdfast.Locker, key KeyFunc, opts *Options) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(UnaryServerInterceptor(locks, key, opts)),
		grpc.ChainStreamInterceptor(StreamServerInterceptor(locks, key, opts)),
	}
}

func waiting(d time.Duration) *Options {
	return &Options{Lock: []holdfast.LockOption{holdfast.Wait(d)}}
}

func inMemory(t *testing.T, opts *holdfast.Options) *holdfast.Locker {
	return closing(t, must.Get(holdfast.New(memlock.New(), opts)))
}

// inSharedMemory opens the store that all Lockers of a test share.
func inSharedMemory(t *testing.T) *holdfast.Locker {
	locks, err := holdfast.Open(t.Context(), "mem://"+t.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, locks)
}

func closing(t *testing.T, locks *holdfast.Locker) *holdfast.Locker {
	t.Cleanup(func() {
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// background is a context for calls that are waited for.
func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// refused checks the error of a call and returns what it says.
func refused(t *testing.T, err error, code codes.Code, reason Reason) Refusal {
	t.Helper()
	r, _ := RefusalOf(err)
	if status.Code(err) != code || r.Reason != reason {
		t.Errorf("%v, reason %q; want %v, %s", err, r.Reason, code, reason)
	}
	return r
}

// free fails the test unless the key can be locked.
func free(t *testing.T, locks *holdfast.Locker, key string) {
	t.Helper()
	lock, err := locks.Lock(background(t), key)
	if err != nil {
		t.Errorf("%s was not given back: %v", key, err)
		return
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
	return v
}
