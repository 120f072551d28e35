package grpclock

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
)

// A KeyFunc returns the key that a call needs; "" leaves the call unguarded. The method is
// the full method, such as "/bank.Bank/Withdraw"; the request is nil for a stream. An error
// refuses the call, with InvalidArgument unless the error carries its own status. Many
// goroutines may call a KeyFunc at once.
type KeyFunc func(ctx context.Context, method string, req any) (string, error)

// Metadata takes the key from an entry of the call's metadata. Without the entry the key is
// "". Two values of the entry are refused. Use Metadata only for callers that are trusted
// with the keys of all locks: otherwise, put a word before the value in your own KeyFunc.
func Metadata(name string) KeyFunc {
	return func(ctx context.Context, _ string, _ any) (string, error) {
		return entry(ctx, name)
	}
}

// Required refuses calls without a key. The detail tells the client what is
// missing, such as "set order-id in the metadata".
func Required(key KeyFunc, detail string) KeyFunc {
	return func(ctx context.Context, method string, req any) (string, error) {
		name, err := key(ctx, method, req)
		if name == "" && err == nil {
			err = errors.New(detail)
		}
		return name, err
	}
}

// entry returns the only value of an entry of the call's metadata, "" without the entry.
func entry(ctx context.Context, name string) (string, error) {
	switch values := metadata.ValueFromIncomingContext(ctx, name); len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", fmt.Errorf("%d values of %s in the metadata; it must be one", len(values), name)
	}
}

// badKey refuses a call without a valid key.
func badKey(err error) error {
	if _, own := status.FromError(err); own {
		return err
	}
	var bad *holdfast.Error
	if errors.As(err, &bad) {
		err = bad.Err // without the key, which may be long
	}
	return refuse(Refusal{Reason: KeyInvalid}, err, err.Error())
}
