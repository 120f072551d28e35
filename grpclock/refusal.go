package grpclock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-go/holdfast"
)

// Domain is the domain of the ErrorInfo in refusals.
const Domain = "holdfast"

// A Reason is the reason why a call was refused.
type Reason string

// The reasons for a refusal.
const (
	LockHeld         Reason = "LOCK_HELD"         // another call holds the lock
	LockLost         Reason = "LOCK_LOST"         // the lock ended while it was needed
	LockInvalid      Reason = "LOCK_INVALID"      // the server has made an impossible request
	KeyInvalid       Reason = "KEY_INVALID"       // missing, too long, or not UTF-8
	StoreUnreachable Reason = "STORE_UNREACHABLE" // of the locks, or of the fences
	TokenMissing     Reason = "TOKEN_MISSING"     // the call has to carry a fencing token
	TokenInvalid     Reason = "TOKEN_INVALID"     // the token is malformed, or for another key
	TokenOutdated    Reason = "TOKEN_OUTDATED"    // the token of a later holder has been seen
)

// answers are the gRPC codes of the reasons.
var answers = map[Reason]codes.Code{
	LockHeld:         codes.Aborted,
	LockLost:         codes.Aborted,
	LockInvalid:      codes.Internal,
	KeyInvalid:       codes.InvalidArgument,
	StoreUnreachable: codes.Unavailable,
	TokenMissing:     codes.InvalidArgument,
	TokenInvalid:     codes.InvalidArgument,
	TokenOutdated:    codes.FailedPrecondition,
}

// A Refusal says why an interceptor of this package has refused a call.
type Refusal struct {
	Reason     Reason
	Key        string        // "" if there is none
	RetryAfter time.Duration // when the holder's lease expires unless renewed; 0 if unknown
}

// RefusalOf returns the Refusal in the error of a call; false if the error carries no
// Refusal.
func RefusalOf(err error) (Refusal, bool) {
	var r Refusal
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == Domain {
				r.Reason, r.Key = Reason(d.GetReason()), d.GetMetadata()["key"]
			}
		case *errdetails.RetryInfo:
			r.RetryAfter = d.GetRetryDelay().AsDuration()
		}
	}
	if r.Reason == "" {
		return Refusal{}, false
	}
	return r, true
}

// details encodes the Refusal for RefusalOf.
func (r Refusal) details() []protoadapt.MessageV1 {
	info := &errdetails.ErrorInfo{Reason: string(r.Reason), Domain: Domain}
	if r.Key != "" {
		info.Metadata = map[string]string{"key": r.Key}
	}
	all := []protoadapt.MessageV1{info}
	if r.RetryAfter > 0 {
		all = append(all, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)})
	}
	return all
}

// A refusal is a status for the caller. The cause is for interceptors around this
// interceptor only, since the cause may reveal internals of the server.
type refusal struct {
	status *status.Status
	cause  error
}

// GRPCStatus returns the status that is sent to the caller.
func (e *refusal) GRPCStatus() *status.Status { return e.status }

func (e *refusal) Error() string {
	if e.cause == nil {
		return e.status.String()
	}
	return fmt.Sprintf("%v: %v", e.status, e.cause)
}

func (e *refusal) Unwrap() error { return e.cause }

func refuse(r Refusal, cause error, message string) error {
	s := status.New(answers[r.Reason], "grpclock: "+strings.ToValidUTF8(message, "?"))
	if detailed, err := s.WithDetails(r.details()...); err == nil {
		s = detailed
	}
	return &refusal{s, cause}
}

// cut refuses a call whose context has ended.
func cut(ended, cause error) error {
	return &refusal{status.FromContextError(ended), cause}
}

// notLocked refuses a call that could not acquire its lock.
func notLocked(key string, err error) error {
	var held *holdfast.HeldError
	switch {
	case errors.Is(err, holdfast.ErrInvalidKey):
		return badKey(err)
	case errors.As(err, &held):
		return refuse(Refusal{Reason: LockHeld, Key: key, RetryAfter: held.Left}, err, "another call has the lock")
	case errors.Is(err, holdfast.ErrLost):
		return refuse(Refusal{Reason: LockLost, Key: key}, err, "an operator has ended the wait for the lock")
	case unreachable(err), errors.Is(err, holdfast.ErrClosed):
		return refuse(Refusal{Reason: StoreUnreachable, Key: key}, err, "the store of the locks cannot be asked")
	}
	return refuse(Refusal{Reason: LockInvalid, Key: key}, err, "the server asks for a lock that cannot be had")
}

// unreachable reports whether the store caused the error of a Lock, and not the caller or
// this program.
func unreachable(err error) bool {
	return !slices.ContainsFunc(otherErrors, func(other error) bool { return errors.Is(err, other) })
}

var otherErrors = []error{
	holdfast.ErrHeld, holdfast.ErrLost, holdfast.ErrClosed, holdfast.ErrInvalid, holdfast.ErrNotFenced, holdfast.ErrDeadlock,
}
