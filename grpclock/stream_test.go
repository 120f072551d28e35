package grpclock

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/holdfast-go/holdfast"
)

func TestStream(t *testing.T) {
	t.Parallel()
	locks := inMemory(t, nil)
	c := serve(t, &service{stream: func(s chat) error {
		for {
			if _, err := s.Recv(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if err := s.Send(&pb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
		}
	}}, guarded(locks, byBody, nil)...)
	ctx := background(t)
	for range 2 {
		stream, err := c.talk(ctx, "k")
		for range 3 {
			if err == nil {
				err = stream.Send(&pb.StreamingOutputCallRequest{})
			}
			if err == nil {
				_, err = stream.Recv()
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := locks.TryLock(ctx, "k"); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("in the middle of a stream: %v", err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := stream.Recv(); err != io.EOF {
			t.Errorf("the end of the stream: %v", err)
		}
		free(t, locks, "k")
	}
}

func TestLostInAStream(t *testing.T) {
	t.Parallel()
	locks := inMemory(t, nil)
	inside, sent := make(chan context.Context, 1), make(chan error, 2)
	c := serve(t, &service{stream: func(s chat) error {
		inside <- s.Context()
		_, err := s.Recv() // the context has ended by then
		sent <- err
		sent <- s.Send(&pb.StreamingOutputCallResponse{})
		return nil
	}}, guarded(locks, byBody, nil)...)
	stream, err := c.talk(background(t), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx := await(t, "stream", inside)
	breakLock(t, locks, "k")
	await(t, "loss", ctx.Done())
	if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"receive", "send"} {
		if err := await(t, what, sent); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("%s after the loss: %v", what, err)
		}
	}
	_, err = stream.Recv()
	refused(t, err, codes.Aborted, LockLost)
}
